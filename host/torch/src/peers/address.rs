//! The address by which the other ranks reach this machine.

use super::Peers;
use super::error::{PeersError, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

impl Peers {
    /// The address by which the other ranks reach this machine: its own on the network on which it reaches the store.
    ///
    /// # Errors
    /// The network has no way to the store, or only loopback, although ranks run on other machines.
    pub fn address(&self) -> Result<IpAddr> {
        let Some(joined) = &self.joined else { return Ok(Ipv4Addr::LOCALHOST.into()) };
        let at = &joined.at;
        let address = towards(&at.address, at.port).map_err(|error| PeersError::Unreachable {
            rank: at.rank,
            address: at.place(),
            what: error.to_string(),
        })?;
        let machine = |rank: usize| joined.processes.get(rank).map(|process| process.machine());
        if address.is_loopback() && (0..at.size).any(|rank| machine(rank) != machine(at.rank)) {
            return Err(PeersError::OnlyLoopback { process: self.process(at.rank), address: at.address.clone() });
        }
        Ok(address)
    }
}

/// The address of this machine on the network on which it reaches `host`. Nothing is sent.
fn towards(host: &str, port: u16) -> std::io::Result<IpAddr> {
    let mut last = std::io::Error::other("the name has no address");
    for to in (host, port).to_socket_addrs()? {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let found = UdpSocket::bind(any).and_then(|socket| socket.connect(to).and_then(|()| socket.local_addr()));
        match found {
            Ok(own) => return Ok(own.ip()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_this_machine_is_loopback() {
        assert_eq!(towards("127.0.0.1", 1).unwrap(), Ipv4Addr::LOCALHOST);
        assert!(towards("", 1).is_err());
        assert_eq!(Peers::alone().address().unwrap(), Ipv4Addr::LOCALHOST);
    }
}
