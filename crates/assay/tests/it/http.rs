//! Requests to the pages that Assay serves, by their owner and by others.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

/// The user and group of a stranger.
const STRANGER: u32 = 7002;

/// The answer to a request.
pub(crate) struct Answered {
    pub(crate) status: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends a request without its end, and reads the answer.
pub(crate) fn answer_of(mut stream: TcpStream, request: &str) -> Answered {
    stream.write_all(format!("{request}\r\n\r\n").as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    let first = head.lines().next().unwrap();
    let (_version, status) = first.split_once(' ').unwrap();
    Answered { status: status.to_owned(), head: head.to_owned(), body: body.to_owned() }
}

/// Returns the parts of the URL that Assay printed: the address, and the path, which has the key.
pub(crate) fn page_address(url: &str) -> (SocketAddr, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, key) = rest.split_once('/').unwrap();
    (address.parse().unwrap(), format!("/{key}"))
}

/// Asks for pages as another user of this machine, who has everything but the key.
#[track_caller]
pub(crate) fn refuses_strangers(address: SocketAddr, key: &str, paths: &[&str]) {
    as_stranger(|| {
        assert!(listens(address), "another user does not see the port");
        let almost = format!("{}x", &key[..key.len() - 1]);
        for path in paths {
            for (path, header) in [
                ((*path).to_owned(), ""),
                (format!("/{almost}{path}"), ""),
                ((*path).to_owned(), &*format!("\r\nAuthorization: Bearer {almost}")),
                ((*path).to_owned(), "\r\nAuthorization: Bearer"),
            ] {
                let request = format!("GET {path} HTTP/1.1\r\nHost: {address}{header}");
                let answer = answer_of(TcpStream::connect(address).unwrap(), &request);
                assert_eq!(answer.status, "403 Forbidden", "{request}");
                assert!(answer.body.contains("use the address that Assay printed"));
                assert!(!format!("{}{}", answer.head, answer.body).contains(key));
            }
        }
        assert!(!all_command_lines().contains(key), "the key is in a command line");
    });
}

/// Runs a function as another user of this machine, if this one is root.
fn as_stranger<T: Send>(action: impl FnOnce() -> T + Send) -> T {
    // Linux has the user of each thread.
    let act = || {
        if rustix::process::geteuid().is_root() {
            set_thread_groups(&[]).unwrap();
            set_thread_gid(Gid::from_raw(STRANGER)).unwrap();
            set_thread_uid(Uid::from_raw(STRANGER)).unwrap();
        }
        action()
    };
    std::thread::scope(|scope| scope.spawn(act).join().unwrap())
}

/// Returns whether the kernel shows everybody that somebody listens at an address.
fn listens(address: SocketAddr) -> bool {
    let local = format!(":{:04X}", address.port());
    let table = fs_err::read_to_string("/proc/net/tcp").unwrap();
    table.lines().any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        matches!(columns[..], [_, own, _, "0A", ..] if own.ends_with(&local))
    })
}

/// Returns the command lines of all processes, which every user can read.
fn all_command_lines() -> String {
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    let read = processes.filter_map(|entry| fs_err::read(entry.path().join("cmdline")).ok());
    read.map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
}
