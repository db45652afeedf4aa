//! The bytes between client and server: a unix socket, TCP, or TLS over TCP.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{Shutdown, shutdown};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::failure;
use super::tls::in_words;
use crate::Error;

/// Returns whether a connection between two addresses stays on one host. To an address of any of its own interfaces the
/// kernel connects from that very address.
fn is_one_host(local: IpAddr, peer: IpAddr) -> bool {
    let (local, peer) = (local.to_canonical(), peer.to_canonical());
    peer.is_loopback() || local == peer
}

/// A connected socket. That of unix has with it how long a read may take.
pub enum Stream {
    Unix(UnixStream, Option<Timespec>),
    Tcp(TcpStream),
    // Boxed: it is larger than the others by far.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// The socket beneath a stream, to shut it down from another thread.
pub(crate) struct Socket(OwnedFd);

impl Stream {
    /// Connects to the unix socket at `path`.
    pub(crate) fn connect_unix(path: &Path) -> io::Result<Self> {
        Ok(Self::Unix(UnixStream::connect(path)?, None))
    }

    /// Connects by TCP, to the first address of `host` that answers within `timeout`; not encrypted.
    pub(crate) fn connect_tcp(host: &str, port: u16, timeout: Duration) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));
        for place in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&place, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Self::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Encrypts a TCP stream; the server has agreed. Any other stays as it is.
    pub(crate) fn encrypt(&mut self, config: Arc<ClientConfig>, host: &str) -> Result<(), Error> {
        self.try_encrypt(config, host).map_err(|error| {
            let what = format!("cannot agree on TLS with the server: {error}");
            Error::refused(what)
        })
    }

    fn try_encrypt(&mut self, config: Arc<ClientConfig>, host: &str) -> io::Result<()> {
        let Self::Tcp(tcp) = self else {
            return Ok(());
        };
        let name = rustls::pki_types::ServerName::try_from(host.to_string()).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{host}` is not a name that TLS knows"),
            )
        })?;
        let mut tcp = tcp.try_clone()?;
        let worded = |error: io::Error| {
            let of_tls = error.get_ref().and_then(|error| error.downcast_ref());
            let words = of_tls.map(in_words);
            words.map_or(error, io::Error::other)
        };
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp).map_err(worded)?;
        }
        *self = Self::Tls(Box::new(StreamOwned::new(tls, tcp)));
        Ok(())
    }

    /// Limits how long a read or write may take; `None` is for ever.
    pub(crate) fn limit(&mut self, time: Option<Duration>) -> Result<(), Error> {
        if let Self::Unix(_, waits) = self {
            *waits = time.and_then(|time| time.try_into().ok());
        }
        let set = |way| set_socket_timeout(self.fd(), way, time);
        set(Timeout::Recv)
            .and_then(|()| set(Timeout::Send))
            .map_err(|error| failure::from_io("set a time limit", &error.into()))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream, _) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.sock.as_fd(),
        }
    }

    /// Returns another handle to the socket.
    pub(crate) fn socket(&self) -> io::Result<Socket> {
        self.fd().try_clone_to_owned().map(Socket)
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether what is sent stays secret: on this host, or encrypted.
    pub(crate) fn is_private(&self) -> bool {
        !matches!(self, Self::Tcp(_))
    }

    /// Returns whether the other end is on this host, as far as addresses tell: a forwarded port is where its forwarder is.
    pub(crate) fn is_on_this_host(&self) -> bool {
        let socket = match self {
            Self::Unix(..) => return true,
            Self::Tcp(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        };
        let ends = socket.local_addr().ok().zip(socket.peer_addr().ok());
        ends.is_some_and(|(local, peer)| is_one_host(local.ip(), peer.ip()))
    }

    /// The process that listens on a unix socket.
    pub(crate) fn listener_pid(&self) -> Option<u32> {
        let Self::Unix(stream, _) = self else {
            return None;
        };
        let credentials = rustix::net::sockopt::socket_peercred(stream).ok()?;
        Some(credentials.pid.as_raw_nonzero().get().unsigned_abs())
    }

    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            // A thread that is blocked in reading a unix socket is also woken, for nothing, when the server has taken what
            // was written to it. One that polls for input is not: a system call more, and a switch of context less.
            Self::Unix(stream, timeout) => {
                let mut fds = [PollFd::new(stream, PollFlags::IN)];
                match poll(&mut fds, timeout.as_ref())? {
                    0 => Err(io::ErrorKind::TimedOut.into()),
                    _ => stream.read(buffer),
                }
            }
            Self::Tcp(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    #[inline]
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream, _) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
}

impl Socket {
    /// Ends all reading and writing, also what waits in another thread.
    pub(crate) fn shut_down(&self) {
        // A socket that is closed already is what is wanted.
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn a_host_is_told_by_the_two_ends_of_a_connection() {
        for (local, peer, is_one) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", true),
            ("::1", "::1", true),
            ("10.0.0.5", "10.0.0.5", true),
            ("fd00::5", "fd00::5", true),
            ("::ffff:10.0.0.5", "10.0.0.5", true),
            ("10.0.0.5", "10.0.0.6", false),
            ("192.168.1.2", "8.8.8.8", false),
            ("::ffff:10.0.0.5", "::ffff:10.0.0.6", false),
        ] {
            let parsed = |text: &str| text.parse().unwrap();
            let found = is_one_host(parsed(local), parsed(peer));
            assert_eq!(found, is_one, "{local} -> {peer}");
        }
    }

    #[test]
    fn every_address_of_this_host_is_on_this_host() {
        // Nothing is sent: the kernel chooses the address by which others are reached, where there are others.
        let outside = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let own = outside.connect(("192.0.2.1", 9));
        let own = own.and_then(|()| outside.local_addr());
        let own = own.map(|address| address.ip());
        for address in own.ok().into_iter().chain([Ipv4Addr::LOCALHOST.into()]) {
            let listener = TcpListener::bind((address, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let timeout = Duration::from_secs(5);
            let stream = Stream::connect_tcp(&address.to_string(), port, timeout).unwrap();
            assert!(stream.is_on_this_host(), "{address}");
        }
    }
}
