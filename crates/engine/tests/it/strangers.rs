//! Other users of the host: nobody lets them in, and they find no password.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use engine::mysql::{Address, Host, SslMode};
use engine::{
    Certificate, ErrorClass, ForReplicas, Network, Port, Replicated, Session as _, SetupError,
    StartOptions,
};
use memchr::memmem;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use words::Secret;

use crate::server::{ServerDir, TestServer, on_each_server};

on_each_server!(
    nobody_else_logs_in_to_a_server_that_listens,
    nobody_else_logs_in_to_a_server_with_tls,
    nobody_else_logs_in_to_a_server_with_replicas,
    neither_files_nor_logs_have_the_password,
    recorded_settings_have_no_password,
);

/// The user and group of a stranger.
const STRANGER: u32 = 7002;

const PASSWORD: &str = "made-for-this-server";

/// Runs a function as another user of the host. Without root, which is needed for that, says so and
/// runs it as the same user.
#[expect(clippy::print_stderr, reason = "the test's reader must know what was tried")]
fn as_stranger<T: Send>(action: impl FnOnce() -> T + Send) -> T {
    // Linux has the user of each thread.
    let act = || {
        if rustix::process::geteuid().is_root() {
            set_thread_groups(&[]).unwrap();
            set_thread_gid(Gid::from_raw(STRANGER)).unwrap();
            set_thread_uid(Uid::from_raw(STRANGER)).unwrap();
        } else {
            eprintln!("not root: the stranger is this user");
        }
        action()
    };
    std::thread::scope(|scope| scope.spawn(act).join().unwrap())
}

fn network(certificate: Option<Certificate>) -> Network {
    Network { port: port(), password: Secret::new(PASSWORD), certificate }
}

fn port() -> Port {
    Port::reserve(Ipv4Addr::LOCALHOST.into()).unwrap()
}

fn start<S: TestServer>(
    place: &ServerDir<S>,
    set: &[(&str, &str)],
    network: Option<&Network>,
    replicas: Option<ForReplicas<'_>>,
) -> Result<S, SetupError> {
    place.with_options(&place.path().join("data"), &S::build(), set, |options| {
        S::start(&StartOptions { network, replicas, ..options })
    })
}

/// Returns the TCP ports on which a process listens.
fn listening_ports(pid: u32) -> BTreeSet<u16> {
    let descriptors = fs_err::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let links = descriptors.filter_map(|entry| fs_err::read_link(entry.path()).ok());
    let files: BTreeSet<String> = links.map(|link| link.display().to_string()).collect();
    let tables = ["tcp", "tcp6"].map(|name| fs_err::read_to_string(format!("/proc/net/{name}")));
    let tables = tables.map(Result::unwrap_or_default).concat();
    let listening_port = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, ..] = columns[..] else {
            return None;
        };
        let is_its = files.contains(&format!("socket:[{}]", columns.get(9)?));
        let (_, port) = local.rsplit_once(':')?;
        (state == "0A" && is_its).then(|| u16::from_str_radix(port, 16).unwrap())
    };
    tables.lines().filter_map(listening_port).collect()
}

/// Returns the names of a server's accounts, and those of the host's users.
fn account_names<S: TestServer>(session: &mut S::Session) -> BTreeSet<String> {
    let accounts = session.query_column(S::ACCESS.accounts).unwrap();
    assert!(!accounts.is_empty());
    let users = fs_err::read_to_string("/etc/passwd").unwrap();
    let users = users.lines().filter_map(|line| line.split(':').next());
    let others = users.chain(["", "root", "mysql", "postgres", "assay"]);
    accounts.into_iter().chain(others.map(str::to_owned)).collect()
}

/// Tries to log in with every name, with and without encryption, at every port of a server, as
/// another user. Returns the ports.
fn refuses_strangers<S: TestServer>(server: &S, encrypts: bool) -> BTreeSet<u16> {
    let ports = listening_ports(server.process_id().unwrap());
    let names = account_names::<S>(&mut server.connect().unwrap());
    let modes =
        if encrypts { vec![SslMode::Disable, SslMode::Require] } else { vec![SslMode::Disable] };
    let addresses: Vec<Address> = ports
        .iter()
        .flat_map(|&port| names.iter().map(move |name| (port, name)))
        .flat_map(|(port, name)| modes.iter().map(move |mode| (port, name, mode)))
        .map(|(port, name, &ssl_mode)| Address {
            host: Host::Tcp("127.0.0.1".into()),
            port,
            user: name.clone(),
            ssl_mode,
            ssl_root: None,
            ..server.client_address().clone()
        })
        .collect();
    as_stranger(|| {
        for address in &addresses {
            for password in [None, Some(Secret::new(""))] {
                let address = Address { password, ..address.clone() };
                match S::log_in(&address) {
                    Ok(_) => panic!("{address} is let in"),
                    Err(error) => {
                        assert_eq!(error.class, ErrorClass::Refused, "{address}: {error}")
                    }
                }
            }
        }
    });
    ports
}

fn nobody_else_logs_in_to_a_server_that_listens<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let (place, network) = (ServerDir::<S>::new(), network(None));
    let server = start(&place, S::ACCESS.careless, Some(&network), None).unwrap();
    let ports = refuses_strangers(&server, false);
    assert_eq!(Vec::from_iter(ports), [network.port.number()]);
    // Those who know the password are let in.
    S::log_in(server.client_address()).unwrap();
}

fn nobody_else_logs_in_to_a_server_with_tls<S: TestServer>() {
    if !S::is_installed() || S::has_old_tls() {
        return;
    }
    let certificate = Certificate::make(Ipv4Addr::LOCALHOST.into()).unwrap();
    let (place, network) = (ServerDir::<S>::new(), network(Some(certificate)));
    let server = start(&place, &[], Some(&network), None).unwrap();
    let ports = refuses_strangers(&server, true);
    assert_eq!(Vec::from_iter(ports), [network.port.number()]);
}

fn nobody_else_logs_in_to_a_server_with_replicas<S: TestServer + Replicated>() {
    if !S::is_installed() {
        return;
    }
    let (place, other, port) = (ServerDir::<S>::new(), ServerDir::<S>::new(), port());
    let replicas = ForReplicas { port: &port, logical: false };
    let primary = match start(&place, &[], None, Some(replicas)) {
        Err(SetupError::Config { what, .. }) if what.contains("cannot replicate") => return,
        started => started.unwrap(),
    };
    let data = other.path().join("data");
    let replica = other.with_options(&data, &S::build(), &[], |options| {
        primary.start_replica("replica_1", &StartOptions { replicas: Some(replicas), ..options })
    });
    let replica = replica.unwrap();
    let ports = refuses_strangers(&primary, false);
    let expected = S::ACCESS.replicas_use_tcp.then_some(port.number());
    assert_eq!(Vec::from_iter(ports), Vec::from_iter(expected));
    assert_eq!(listening_ports(replica.process_id().unwrap()), BTreeSet::new());
}

fn neither_files_nor_logs_have_the_password<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let (place, network) = (ServerDir::<S>::new(), network(None));
    let server = start(&place, S::ACCESS.talkative, Some(&network), None).unwrap();
    let statements = place.path().join(S::ACCESS.statement_log);
    let statements = fs_err::read(statements).unwrap();
    assert!(String::from_utf8_lossy(&statements).contains("create database ib"));
    let has_password = |path: &PathBuf| {
        let text = fs_err::read(path).unwrap();
        memmem::find(&text, PASSWORD.as_bytes()).is_some()
    };
    let files = readable_files(place.path());
    assert!(files.len() > 10);
    assert_eq!(files.into_iter().find(has_password), None);
    if rustix::process::geteuid().is_root() {
        let files = as_stranger(|| readable_files(place.path()));
        assert_eq!(files, Vec::<PathBuf>::new(), "others can read these");
    }
    server.stop().unwrap();
}

fn recorded_settings_have_no_password<S: TestServer>() {
    if !S::is_installed() {
        return;
    }
    let place = ServerDir::<S>::new();
    let server = place.start(&[S::ACCESS.secret]).unwrap();
    let settings = server.settings().unwrap();
    assert!(settings.len() > 100);
    let mut with_password = settings.iter().filter(|it| it.value.contains("hunter2"));
    assert_eq!(with_password.next(), None);
}

/// Returns the files below a directory that this thread's user can read.
fn readable_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            files.extend(readable_files(&path));
        } else if kind.is_file() && fs_err::File::open(&path).is_ok() {
            files.push(path);
        }
    }
    files
}
