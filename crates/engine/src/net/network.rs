//! The address, password and certificate of a server that assay starts, for clients that connect by
//! TCP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};
use words::Secret;

use super::address::{Address, Host, Roots, SslMode};

/// The files with a server's certificate and private key, next to its socket.
pub(crate) const CERTIFICATE: &str = "server.crt";
pub(crate) const KEY: &str = "server.key";

/// The access of clients to a server by TCP, instead of by its private socket.
#[derive(Debug)]
pub struct Network {
    /// The address and port on which it listens.
    pub port: Port,
    /// The password of the account that they use.
    pub password: Secret,
    /// The server's certificate; `None`: connections are not encrypted.
    pub certificate: Option<Certificate>,
}

impl Network {
    /// Returns the address for clients that log in as `user`; the rest is that of the server's
    /// private `socket`.
    pub(crate) fn address(&self, user: &str, socket: Address) -> Address {
        let pem = self.certificate.as_ref().map(|certificate| certificate.pem.clone());

        Address {
            host: Host::Tcp(self.port.ip().to_string()),
            port: self.port.number(),
            user: user.into(),
            password: Some(self.password.clone()),
            ssl_mode: if pem.is_some() { SslMode::VerifyFull } else { SslMode::Disable },
            ssl_root: pem.map(Roots::Pem),
            ..socket
        }
    }
}

/// A certificate for an address of this host, and its key. It is its own authority: clients trust
/// it alone.
#[derive(Debug)]
pub struct Certificate {
    pub(crate) pem: String,
    /// The private key, as PEM.
    pub(crate) key: Secret,
}

impl Certificate {
    /// Makes a certificate with a new key.
    ///
    /// # Errors
    /// The host has no random numbers.
    pub fn make(address: IpAddr) -> io::Result<Self> {
        let made =
            rcgen::generate_simple_self_signed([address.to_string()]).map_err(io::Error::other)?;
        Ok(Self { pem: made.cert.pem(), key: Secret::new(made.signing_key.serialize_pem()) })
    }

    /// Returns the names and contents of the certificate's files.
    pub(crate) fn files(&self) -> [(&'static str, &str); 2] {
        [(CERTIFICATE, &self.pem), (KEY, self.key.expose())]
    }
}

/// A free TCP port of an address of this host. The kernel gives it to nobody else while this lives,
/// except to a server that asks for it by its number and allows the reuse of addresses.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Port {
    /// Reserves a port.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrNotAvailable`] for an address of another host.
    pub fn reserve(address: IpAddr) -> io::Result<Self> {
        let family = match address {
            IpAddr::V4(_) => AddressFamily::INET,
            IpAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddr::new(address, 0))?;
        Ok(Self { address: getsockname(&socket)?.try_into()?, _socket: socket })
    }

    /// Returns the address of this host.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// Returns the number.
    pub fn number(&self) -> u16 {
        self.address.port()
    }
}
