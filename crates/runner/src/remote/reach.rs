//! The address of rank 0's host that load ranks reach.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use probe::Proc;

/// The time for which a rank tries an address.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Listens on addresses of this host, so that other ranks can try them.
pub struct Listeners(Vec<TcpListener>);

impl Listeners {
    /// Begins to listen on one address, or on every one.
    pub fn open(address: Option<IpAddr>) -> Self {
        let all = || probe::host_addresses(&Proc::live());
        let addresses = address.map_or_else(all, |address| vec![address]);
        let bind = |address: IpAddr| TcpListener::bind((address, 0)).ok();
        Self(addresses.into_iter().filter_map(bind).collect())
    }

    /// Returns where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }
}

/// Returns those of another host's listeners that this host reaches.
pub fn reachable(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let reaches = |address: &&SocketAddr| TcpStream::connect_timeout(address, TIMEOUT).is_ok();
    addresses.iter().filter(reaches).copied().collect()
}
