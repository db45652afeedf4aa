//! The bytes between client and server: a unix socket, TCP, or TLS over TCP.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::{Address, Host};

/// A connected socket. That of unix has with it how long a read may take.
pub(super) enum Stream {
    Unix(UnixStream, Option<Timespec>),
    Tcp(TcpStream),
    // Boxed: it is larger than the others by far.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// The socket beneath a stream, to shut it down from another thread.
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// The path of the socket in `directory`.
pub(super) fn socket_path(directory: &std::path::Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

impl Stream {
    /// Connects, without encryption.
    pub(super) fn connect(address: &Address) -> io::Result<Self> {
        match &address.host {
            Host::Unix(directory) => {
                let stream = UnixStream::connect(socket_path(directory, address.port))?;
                Ok(Self::Unix(stream, None))
            }
            Host::Tcp(host) => {
                let mut last =
                    io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address"));
                for place in (host.as_str(), address.port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&place, address.connect_timeout) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Self::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// Encrypts a TCP stream; the server has agreed.
    pub(super) fn encrypt(self, config: Arc<ClientConfig>, host: &str) -> io::Result<Self> {
        let Self::Tcp(mut tcp) = self else {
            return Ok(self);
        };
        let name = rustls::pki_types::ServerName::try_from(host.to_string()).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{host}` is not a name that TLS knows"),
            )
        })?;
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut tcp)?;
        }
        Ok(Self::Tls(Box::new(StreamOwned::new(tls, tcp))))
    }

    /// How long a read or write may take; `None` for ever.
    pub(super) fn set_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
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
    pub(super) fn socket(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(stream, _) => stream.try_clone().map(Socket::Unix),
            Self::Tcp(stream) => stream.try_clone().map(Socket::Tcp),
            Self::Tls(stream) => stream.sock.try_clone().map(Socket::Tcp),
        }
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether what is sent stays secret: on this host, or encrypted.
    pub(super) fn is_private(&self) -> bool {
        !matches!(self, Self::Tcp(_))
    }

    /// The process that listens on a unix socket.
    pub(super) fn listener_pid(&self) -> Option<u32> {
        let Self::Unix(stream, _) = self else {
            return None;
        };
        let credentials = rustix::net::sockopt::socket_peercred(stream).ok()?;
        Some(credentials.pid.as_raw_nonzero().get().unsigned_abs())
    }

    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream, _) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
}

impl Socket {
    /// Ends all reading and writing, also what waits in another thread.
    pub(super) fn shut_down(&self) {
        // A socket that is closed already is what is wanted.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}
