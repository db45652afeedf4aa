//! The thread that serves the live view of a run.
//!
//! It polls its connections at most [`ROUNDS_PER_S`] times a second. Their number is bounded, and
//! it waits for none of them: slow or numerous clients neither block each other nor take processors
//! from the measurement.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use load::{Clock as _, SystemClock};
use runner::failure::UsageError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::host::AllowedHosts;
use super::state::{RunInfo, RunState};
use super::{Event, Live, http, spawn};

/// Rounds per second: each round reads from or writes to every ready connection once.
const ROUNDS_PER_S: u32 = 50;
/// The maximum number of connections: beyond it the oldest is closed.
const CONNECTIONS_MAX: usize = 16;
/// The maximum lifetime of a connection.
const CONNECTION_NS_MAX: u64 = 10_000_000_000;
/// Events are handled at least this often.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// The socket that serves the live view.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    hosts: AllowedHosts,
}

impl Listener {
    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Listens on `address`. Only if `anywhere` is set may other machines reach it.
pub fn bind(address: &str, anywhere: bool) -> anyhow::Result<Listener> {
    let wrong = |what: String, help: &str| UsageError::new(what, Some(help.into()));
    let addresses = address.to_socket_addrs().map_err(|error| {
        let what = format!("invalid address `{address}` for `--listen`: {error}");
        wrong(what, "use HOST:PORT, for example `127.0.0.1:9187`")
    })?;
    let addresses: Vec<_> = addresses.collect();
    if !anywhere && addresses.iter().any(|address| !address.ip().is_loopback()) {
        let what = format!(
            "other machines could reach the live page at `{address}`, which has no password"
        );
        let help = "listen on 127.0.0.1, which `ssh -L` can forward, or add `--listen-anywhere`";
        return Err(wrong(what, help).into());
    }
    let socket = TcpListener::bind(addresses.as_slice()).map_err(|error| {
        let what = format!("cannot listen on `{address}`: {error}");
        wrong(what, "choose another port, or port 0 to let the system choose one")
    })?;
    socket.set_nonblocking(true)?;
    let bound = socket.local_addr()?;
    Ok(Listener { socket, address: bound, hosts: AllowedHosts::new(address, bound) })
}

/// Serves the live view of a run, in a thread that ends with this process.
pub fn serve(listener: Listener, about: RunInfo, clock: SystemClock) -> anyhow::Result<Live> {
    let (watcher, events) = channel();
    let mut server = Server {
        listener: listener.socket,
        hosts: listener.hosts,
        connections: Vec::new(),
        state: RunState::new(about),
        events,
        clock,
    };
    spawn("live", move || {
        loop {
            server.round();
            std::thread::sleep(Duration::from_secs(1) / ROUNDS_PER_S);
        }
    })?;
    Ok(Live { watcher: Some(watcher), forwarder: None })
}

struct Server {
    listener: TcpListener,
    hosts: AllowedHosts,
    connections: Vec<Connection>,
    state: RunState,
    events: Receiver<Event>,
    clock: SystemClock,
}

/// A request and its reply.
struct Connection {
    stream: TcpStream,
    ends_at: u64,
    received: Vec<u8>,
    /// The bytes that are still to be sent; `None` if the request is incomplete.
    reply: Option<Vec<u8>>,
}

impl Server {
    /// Waits until something happens, and handles it.
    fn round(&mut self) {
        let mut awaited = vec![PollFd::new(&self.listener, PollFlags::IN)];
        awaited.extend(self.connections.iter().map(|connection| {
            let is_replied = connection.reply.is_some();
            PollFd::new(&connection.stream, if is_replied { PollFlags::OUT } else { PollFlags::IN })
        }));
        // If polling fails, the next round tries again.
        let _ = poll(&mut awaited, Some(&TICK));

        let now = self.clock.now();

        for event in self.events.try_iter() {
            self.state.take(event, now);
        }

        // A flood of connections must not keep the others waiting: the oldest gives way.
        for _ in 0..CONNECTIONS_MAX {
            let Ok((stream, _)) = self.listener.accept() else {
                break;
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.connections.len() == CONNECTIONS_MAX {
                self.connections.remove(0);
            }
            self.connections.push(Connection {
                stream,
                ends_at: now + CONNECTION_NS_MAX,
                received: Vec::new(),
                reply: None,
            });
        }

        let (state, hosts) = (&self.state, &self.hosts);
        self.connections.retain_mut(|connection| {
            connection.ends_at > now && connection.advance(hosts, state, now).unwrap_or(false)
        });
    }
}

impl Connection {
    /// Reads or writes what it can without waiting; returns whether there is more to do.
    fn advance(
        &mut self,
        hosts: &AllowedHosts,
        state: &RunState,
        now_ns: u64,
    ) -> std::io::Result<bool> {
        if self.reply.is_none() {
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(false),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) => return is_not_ready(error),
            }
            self.reply = http::reply(&self.received, hosts, state, now_ns);
        }
        let Some(reply) = &mut self.reply else {
            return Ok(true);
        };
        match self.stream.write(reply) {
            Ok(count) => drop(reply.drain(..count)),
            Err(error) => return is_not_ready(error),
        }
        if reply.is_empty() {
            self.stream.shutdown(Shutdown::Write)?;
        }
        Ok(!reply.is_empty())
    }
}

fn is_not_ready(error: std::io::Error) -> std::io::Result<bool> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(true),
        _ => Err(error),
    }
}
