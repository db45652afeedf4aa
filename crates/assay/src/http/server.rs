//! The thread that serves a site.
//!
//! The thread polls its connections at most [`ROUNDS_PER_S`] times a second. Their number is bounded, and
//! it waits for none of them: slow or numerous clients neither block each other nor take processors
//! from the measurement.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use load::{Clock as _, SystemClock};
use runner::failure::UsageError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::hosts::AllowedHosts;
use super::key::Key;
use super::request::{self, Access};
use super::{Answer, Content, Site};

/// Rounds per second: each round reads from or writes to every ready connection once.
const ROUNDS_PER_S: u32 = 50;
/// The maximum number of connections: beyond it, one gives way.
const CONNECTIONS_MAX: usize = 64;
/// The maximum number of connections that a round accepts. In a flood, a connection has several
/// rounds before it gives way, in which its request can arrive.
const ACCEPTED_PER_ROUND_MAX: usize = 16;
/// The maximum lifetime of a connection.
const CONNECTION_NS_MAX: u64 = 10_000_000_000;
/// The site does what is due at least this often.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// The time that the server waits if an answer is awaited from another thread.
const AWAITING: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The socket of a server.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    access: Access,
}

impl Listener {
    /// Returns the URL of the first page, with the key.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.access.key.path())
    }

    /// Returns the URL of a page without the key, for those who send the key in a header.
    pub fn url_without_key(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Writes the key to a file that only this user can read, or a group that the user has chosen.
    ///
    /// # Errors
    ///
    /// If others can read the file, or if it cannot be written.
    pub fn write_key(&self, path: &Path) -> anyhow::Result<()> {
        self.access.key.write_to(path)
    }
}

/// Listens on `address`, with a new key. Only if `anywhere` is set may other machines reach it.
pub fn bind(address: &str, anywhere: bool) -> anyhow::Result<Listener> {
    let wrong = |what: String, help: &str| UsageError::new(what, Some(help.into()));

    let addresses = address.to_socket_addrs().map_err(|error| {
        let what = format!("invalid address `{address}` for `--listen`: {error}");
        wrong(what, "use HOST:PORT, for example `127.0.0.1:9187`")
    })?;

    let addresses: Vec<_> = addresses.collect();
    if !anywhere && addresses.iter().any(|address| !address.ip().is_loopback()) {
        let what = format!("other machines could reach `{address}`, and there is no encryption");
        let help = "listen on 127.0.0.1, which `ssh -L` can forward, or add `--listen-anywhere`";
        return Err(wrong(what, help).into());
    }

    let socket = TcpListener::bind(addresses.as_slice()).map_err(|error| {
        let what = format!("cannot listen on `{address}`: {error}");
        wrong(what, "choose another port, or port 0 to let the system choose one")
    })?;

    // One thread serves all connections, so it must never wait for one.
    socket.set_nonblocking(true)?;
    let bound = socket.local_addr()?;
    let access = Access { hosts: AllowedHosts::new(address, bound), key: Key::random()? };
    Ok(Listener { socket, address: bound, access })
}

/// Serves a site, as long as this process lives.
pub fn serve(listener: Listener, site: impl Site, clock: &SystemClock) -> ! {
    let Listener { socket, access, .. } = listener;
    let mut server = Server { listener: socket, access, connections: Vec::new(), site };
    loop {
        server.round(clock);
        std::thread::sleep(Duration::from_secs(1) / ROUNDS_PER_S);
    }
}

struct Server<S> {
    listener: TcpListener,
    access: Access,
    connections: Vec<Connection>,
    site: S,
}

/// A request and its reply.
struct Connection {
    stream: TcpStream,
    /// The time at which it is closed, whatever is left to do.
    ends_at: u64,
    /// The request had the key.
    has_key: bool,
    state: Exchange,
}

/// The progress of a connection.
enum Exchange {
    /// The bytes that were received, which are no whole request yet.
    Receiving(Vec<u8>),
    /// Another thread makes the answer.
    Awaiting { answer: Receiver<Content>, is_head: bool },
    /// The bytes that are still to be sent.
    Sending(Vec<u8>),
}

impl<S: Site> Server<S> {
    /// Waits until something happens, and handles it.
    fn round(&mut self, clock: &SystemClock) {
        self.wait();
        let now = clock.now();
        self.site.tick(now);
        self.accept(now);

        let (site, access) = (&mut self.site, &self.access);

        self.connections.retain_mut(|connection| {
            connection.advance(access, site, now).unwrap_or(false)
                && (connection.is_awaiting() || connection.ends_at > now)
        });
    }

    /// Waits until a connection or the listener is ready, or for a while.
    fn wait(&self) {
        let mut awaited = vec![PollFd::new(&self.listener, PollFlags::IN)];
        for connection in &self.connections {
            let flags = match connection.state {
                Exchange::Receiving(_) => PollFlags::IN,
                Exchange::Sending(_) => PollFlags::OUT,
                Exchange::Awaiting { .. } => continue,
            };
            awaited.push(PollFd::new(&connection.stream, flags));
        }

        let is_awaiting = self.connections.iter().any(Connection::is_awaiting);
        // If polling fails, the next round tries again.
        let _ = poll(&mut awaited, Some(if is_awaiting { &AWAITING } else { &TICK }));
    }

    /// Accepts connections. A flood of them must not keep the others waiting: the oldest of those
    /// without the key gives way, or if all have it, the oldest.
    fn accept(&mut self, now: u64) {
        for _ in 0..ACCEPTED_PER_ROUND_MAX {
            let Ok((stream, _)) = self.listener.accept() else {
                break;
            };

            if stream.set_nonblocking(true).is_err() {
                continue;
            }

            if self.connections.len() == CONNECTIONS_MAX {
                let without_key = self.connections.iter().position(|other| !other.has_key);
                self.connections.remove(without_key.unwrap_or(0));
            }

            self.connections.push(Connection {
                stream,
                ends_at: now + CONNECTION_NS_MAX,
                has_key: false,
                state: Exchange::Receiving(Vec::new()),
            });
        }
    }
}

impl Connection {
    fn is_awaiting(&self) -> bool {
        matches!(self.state, Exchange::Awaiting { .. })
    }

    /// Reads or writes what it can without waiting; returns whether there is more to do.
    fn advance(
        &mut self,
        access: &Access,
        site: &mut impl Site,
        now_ns: u64,
    ) -> std::io::Result<bool> {
        if let Exchange::Receiving(received) = &mut self.state {
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(false),
                Ok(count) => received.extend_from_slice(&bytes[..count]),
                Err(error) => return is_not_ready(error),
            }

            let Some(reply) = request::reply(received, access, site, now_ns) else {
                return Ok(true);
            };

            self.has_key = reply.has_key;
            let is_head = reply.is_head;
            self.state = match reply.answer {
                Answer::Now(content) => Exchange::Sending(request::bytes(&content, is_head)),
                Answer::Later(answer) => Exchange::Awaiting { answer, is_head },
            };
        }

        if let Exchange::Awaiting { answer, is_head } = &self.state {
            let content = match answer.try_recv() {
                Ok(content) => content,
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => {
                    Content::text("500 Internal Server Error", "the answer could not be made")
                }
            };

            self.state = Exchange::Sending(request::bytes(&content, *is_head));
            // What took time has not used up the time for sending.
            self.ends_at = now_ns + CONNECTION_NS_MAX;
        }

        let Exchange::Sending(left) = &mut self.state else {
            return Ok(true);
        };
        match self.stream.write(left) {
            Ok(count) => drop(left.drain(..count)),
            Err(error) => return is_not_ready(error),
        }

        if left.is_empty() {
            self.stream.shutdown(Shutdown::Write)?;
        }

        Ok(!left.is_empty())
    }
}

fn is_not_ready(error: std::io::Error) -> std::io::Result<bool> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(true),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// A site that answers when the test does.
    struct WaitingSite {
        answers: Vec<Sender<Content>>,
    }

    impl Site for WaitingSite {
        fn answer(&mut self, _target: &str, _now_ns: u64) -> Answer {
            let (sender, receiver) = channel();
            self.answers.push(sender);
            Answer::Later(receiver)
        }
    }

    #[test]
    fn a_request_with_the_key_does_not_give_way_to_a_flood() {
        let listener = bind("127.0.0.1:0", false).unwrap();
        let (address, path) = (listener.address, listener.access.key.path());
        let clock = SystemClock::begin();
        let mut server = Server {
            listener: listener.socket,
            access: listener.access,
            connections: Vec::new(),
            site: WaitingSite { answers: Vec::new() },
        };

        // Strangers who say nothing, before the request and while it is being answered.
        let mut flood: Vec<TcpStream> = Vec::new();
        let mut flood_round = |server: &mut Server<WaitingSite>| {
            for _ in 0..ACCEPTED_PER_ROUND_MAX {
                flood.push(TcpStream::connect(address).unwrap());
            }
            server.round(&clock);
        };
        (0..6).for_each(|_| flood_round(&mut server));

        let mut request = TcpStream::connect(address).unwrap();
        server.round(&clock);
        // What is sent may arrive some rounds later.
        (0..2).for_each(|_| flood_round(&mut server));
        let sent = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        request.write_all(sent.as_bytes()).unwrap();
        (0..20).for_each(|_| flood_round(&mut server));

        let answer = server.site.answers.pop().expect("the request gave way");
        answer.send(Content::text("200 OK", "the page")).unwrap();
        flood_round(&mut server);

        let mut reply = String::new();
        request.read_to_string(&mut reply).unwrap();
        assert!(reply.ends_with("the page\n"), "{reply}");
        assert!(server.connections.len() <= CONNECTIONS_MAX);
    }
}
