//! The open connections of each client, which are bounded so that one client cannot take those of all.

use super::connection::Connection;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open connections of all clients.
pub(super) struct Clients {
    /// The most connections of a client.
    most: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    by_client: HashMap<Client, HashMap<u64, Arc<Connection>>>,
    /// The number of the next connection.
    next: u64,
}

/// The place of an open connection, which ends with it.
pub(super) struct Place {
    clients: Arc<Clients>,
    pub(super) client: Client,
    number: u64,
    pub(super) connection: Arc<Connection>,
}

impl Clients {
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default() }
    }

    /// A place for one more connection of the client at `address`. If it has no other, this closes the connection that
    /// has waited for the client longest. `None` if all of its connections wait for the server.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let client = Client::at(address);
        let mut open = self.open();
        let number = open.next;
        let own = open.by_client.entry(client).or_default();
        if own.len() >= self.most {
            let waiting = own.iter().filter_map(|(number, one)| Some((one.waits_since()?, *number)));
            let (_, longest) = waiting.min()?;
            if let Some(closed) = own.remove(&longest) {
                closed.close();
            }
        }
        let connection = Arc::new(Connection::new());
        own.insert(number, connection.clone());
        open.next += 1;
        Some(Place { clients: self.clone(), client, number, connection })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.clients.open();
        if let Some(own) = open.by_client.get_mut(&self.client) {
            own.remove(&self.number);
            if own.is_empty() {
                open.by_client.remove(&self.client);
            }
        }
    }
}

/// A client, as far as the server can tell. Its requests have it as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client(IpAddr);

impl Client {
    /// The client at an address. A network of IPv6 has as many addresses as it wants.
    pub fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()),
            address => Self(address),
        }
    }
}

/// The client of a request that came through no connection.
impl Default for Client {
    fn default() -> Self {
        Self(Ipv6Addr::UNSPECIFIED.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn is_closed(place: &Place) -> bool {
        place.connection.closed().now_or_never().is_some()
    }

    #[test]
    fn a_client_with_too_many_connections_loses_the_one_that_waits_for_it_longest() {
        let clients = Arc::new(Clients::new(2));
        let [one, other]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let first = clients.admit(one).unwrap();
        let second = clients.admit(one).unwrap();
        // The first is computed for.
        let answering = first.connection.answer();
        let third = clients.admit(one).unwrap();
        assert!(is_closed(&second) && !is_closed(&first));
        let more = third.connection.answer();
        assert!(clients.admit(one).is_none());
        assert!(clients.admit(other).is_some());
        // Its answer is there, and it does not read it.
        first.connection.set_stuck(true);
        let fourth = clients.admit(one).unwrap();
        assert!(is_closed(&first) && !is_closed(&third));

        drop((first, second, third, fourth, answering, more));
        assert!(clients.open().by_client.is_empty());
    }

    #[test]
    fn addresses_of_a_network_are_one_client() {
        let same = |one: &str, other: &str| Client::at(one.parse().unwrap()) == Client::at(other.parse().unwrap());
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9") && !same("2001:db8:1:2::1", "2001:db8:1:3::1"));
        assert!(same("::ffff:10.0.0.1", "10.0.0.1") && !same("10.0.0.1", "10.0.0.2"));
    }
}
