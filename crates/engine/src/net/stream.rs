//! The stream between client and server: a unix socket, TCP, or TLS over TCP.

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
use words::Setting;

use super::failure;
use super::tls::error_text;
use crate::error::Error;

/// Returns true when a connection between two addresses stays on one host. The kernel connects to
/// its own interfaces from the same address.
fn is_one_host(local: IpAddr, peer: IpAddr) -> bool {
    let (local, peer) = (local.to_canonical(), peer.to_canonical());
    peer.is_loopback() || local == peer
}

/// A connected socket. A unix socket also has the time limit of a read.
pub enum Stream {
    Unix(UnixStream, Option<Timespec>),
    Tcp(TcpStream),
    // Boxed, because it is much larger than the others.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A handle to a stream's socket, to shut it down from another thread.
pub(crate) struct Socket(OwnedFd);

impl Stream {
    /// Connects to the unix socket at `path`.
    pub(crate) fn connect_unix(path: &Path) -> io::Result<Self> {
        Ok(Self::Unix(UnixStream::connect(path)?, None))
    }

    /// Connects by TCP to the first address of `host` that answers within `timeout`, without
    /// encryption.
    pub(crate) fn connect_tcp(host: &str, port: u16, timeout: Duration) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));

        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Self::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Encrypts a TCP stream after the server has agreed. Does nothing to any other stream.
    pub(crate) fn encrypt(&mut self, config: Arc<ClientConfig>, host: &str) -> Result<(), Error> {
        self.try_encrypt(config, host).map_err(|error| {
            Error::refused(format!("the TLS handshake with the server failed: {error}"))
        })
    }

    fn try_encrypt(&mut self, config: Arc<ClientConfig>, host: &str) -> io::Result<()> {
        let Self::Tcp(tcp) = self else {
            return Ok(());
        };

        let name = rustls::pki_types::ServerName::try_from(host.to_string()).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{host}` is not a valid host name for TLS"),
            )
        })?;

        let mut tcp = tcp.try_clone()?;
        let readable = |error: io::Error| {
            let tls_error = error.get_ref().and_then(|error| error.downcast_ref());
            let text = tls_error.map(error_text);
            text.map_or(error, io::Error::other)
        };

        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp).map_err(readable)?;
        }

        *self = Self::Tls(Box::new(StreamOwned::new(tls, tcp)));
        Ok(())
    }

    /// Limits the time of a read or write; `None` means no limit.
    pub(crate) fn limit(&mut self, time: Option<Duration>) -> Result<(), Error> {
        if let Self::Unix(_, timeout) = self {
            *timeout = time.and_then(|time| time.try_into().ok());
        }
        let set = |direction| set_socket_timeout(self.fd(), direction, time);
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

    /// Returns the way in which the stream reaches the server, as settings of assay's own.
    pub(crate) fn settings(&self) -> [Setting; 2] {
        let (transport, tls) = match self {
            Self::Unix(..) => ("unix socket", "off"),
            Self::Tcp(_) => ("tcp", "off"),
            Self::Tls(_) => ("tcp", "on"),
        };

        [("transport", transport), ("tls", tls)].map(|(name, value)| Setting {
            source: Some("assay".into()),
            ..Setting::new(name, value)
        })
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Returns true when others cannot read the stream: it stays on this host, or is encrypted.
    pub(crate) fn is_private(&self) -> bool {
        !matches!(self, Self::Tcp(_))
    }

    /// Returns true when the peer's address is on this host. For a forwarded port, that is the
    /// forwarder's address.
    pub(crate) fn is_on_this_host(&self) -> bool {
        let socket = match self {
            Self::Unix(..) => return true,
            Self::Tcp(socket) => socket,
            Self::Tls(stream) => &stream.sock,
        };
        let ends = socket.local_addr().ok().zip(socket.peer_addr().ok());
        ends.is_some_and(|(local, peer)| is_one_host(local.ip(), peer.ip()))
    }

    /// Returns the process that listens on a unix socket.
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
            // A thread that blocks in a read is also woken when the server has read its message. A
            // thread that polls is not: that takes one system call more, and one
            // context switch less.
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
    /// Ends all reads and writes, including blocked ones in other threads.
    pub(crate) fn shut_down(&self) {
        // Fails only if the socket is already closed.
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn a_connection_stays_on_one_host_if_its_addresses_do() {
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
        // Sends nothing: the kernel only chooses this host's address for outside connections, if
        // there is one.
        let outside = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let connected = outside.connect(("192.0.2.1", 9)).and_then(|()| outside.local_addr());
        let own = connected.ok().map(|address| address.ip());
        for address in own.into_iter().chain([Ipv4Addr::LOCALHOST.into()]) {
            let listener = TcpListener::bind((address, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let timeout = Duration::from_secs(5);
            let stream = Stream::connect_tcp(&address.to_string(), port, timeout).unwrap();
            assert!(stream.is_on_this_host(), "{address}");
        }
    }
}
