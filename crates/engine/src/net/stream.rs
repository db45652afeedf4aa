//! The bytes between client and server: a unix socket, TCP, or TLS over TCP.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::tls::in_words;

/// A connected socket. That of unix has with it how long a read may take.
pub(crate) enum Stream {
    Unix(UnixStream, Option<Timespec>),
    Tcp(TcpStream),
    // Boxed: it is larger than the others by far.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// The socket beneath a stream, to shut it down from another thread.
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

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
    pub(crate) fn encrypt(&mut self, config: Arc<ClientConfig>, host: &str) -> io::Result<()> {
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

    /// How long a read or write may take; `None` for ever.
    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream, waits) => {
                *waits = timeout.and_then(|timeout| timeout.try_into().ok());
                stream.set_write_timeout(timeout)
            }
            Self::Tcp(stream) => stream
                .set_read_timeout(timeout)
                .and_then(|()| stream.set_write_timeout(timeout)),
            Self::Tls(stream) => stream
                .sock
                .set_read_timeout(timeout)
                .and_then(|()| stream.sock.set_write_timeout(timeout)),
        }
    }

    /// Another handle to the socket.
    pub(crate) fn socket(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(stream, _) => stream.try_clone().map(Socket::Unix),
            Self::Tcp(stream) => stream.try_clone().map(Socket::Tcp),
            Self::Tls(stream) => stream.sock.try_clone().map(Socket::Tcp),
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether what is sent stays secret: on this host, or encrypted.
    pub(crate) fn is_private(&self) -> bool {
        !matches!(self, Self::Tcp(_))
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
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}
