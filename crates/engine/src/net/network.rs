//! Where the clients of a server that assay starts connect by TCP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};
use words::Secret;

/// How clients connect to a server by TCP, instead of to its private socket.
#[derive(Debug)]
pub struct Network {
    /// The port on which it listens.
    pub port: Port,
    /// The password of the account that they use.
    pub password: Secret,
}

/// A free TCP port of an address of this host. The kernel gives it to nobody else while this lives, except to a server that
/// asks for it by its number and allows the reuse of addresses.
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
        Ok(Self {
            address: getsockname(&socket)?.try_into()?,
            _socket: socket,
        })
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
