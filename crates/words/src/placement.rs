//! The processors on which connections run: the client's thread of each, and the server's thread or
//! process that serves it.
//!
//! Where the two land lasts for a whole run, and can look like a difference between servers: on one
//! processor they share caches and wait for each other, on two they don't. So a comparison should
//! place them in the same way on both sides, or anew in each turn.

use crate::{Random, named_enum};

named_enum! {
    /// The way in which connections get their processors.
    pub enum Placement {
        /// The kernel chooses.
        Kernel = "kernel",
        /// Clients and servers have processors of their own, the same in every turn.
        Pinned = "pinned",
        /// Processors are drawn anew for each turn.
        Shuffled = "shuffled",
    }
}

/// The processors of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorPair {
    /// The processor of the client's thread.
    pub client: u32,
    /// The processor of the server's thread or process.
    pub server: u32,
}

/// The processors that connections may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processors {
    clients: Vec<u32>,
    servers: Vec<u32>,
    is_limited: bool,
}

impl Processors {
    /// Returns the processors of clients, which are `allowed` to assay, and those of a server:
    /// `limit` if its config has `cpus`, and otherwise the same.
    pub fn new(allowed: &[u32], limit: Option<&[u32]>) -> Self {
        let sorted = |cpus: &[u32]| {
            let mut sorted = cpus.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            sorted
        };
        let clients = sorted(allowed);
        let servers = limit.map_or_else(|| clients.clone(), sorted);
        let is_limited = servers != clients;
        Self { clients, servers, is_limited }
    }

    /// Divides the processors between clients and servers. A server with a limit keeps all of its
    /// own, and the clients get the others. Otherwise, each gets half, with the odd one for the
    /// servers. If nothing is left for the clients, they share.
    ///
    /// The server's background work belongs on its processors too.
    pub fn divided(&self) -> Self {
        if self.is_limited {
            let others = self.clients.iter().filter(|cpu| !self.servers.contains(cpu));
            let mut clients: Vec<u32> = others.copied().collect();
            if clients.is_empty() {
                clients.clone_from(&self.clients);
            }
            return Self { clients, ..self.clone() };
        }

        let (clients, servers) = self.clients.split_at(self.clients.len() / 2);
        if clients.is_empty() {
            return self.clone();
        }
        Self { clients: clients.to_vec(), servers: servers.to_vec(), is_limited: true }
    }

    /// Returns the processors of clients, in ascending order.
    pub fn clients(&self) -> &[u32] {
        &self.clients
    }

    /// Returns the processors of the server, in ascending order.
    pub fn servers(&self) -> &[u32] {
        &self.servers
    }
}

impl Placement {
    /// Returns the place of each connection in a turn; none if the kernel chooses.
    ///
    /// *Pinned* places alternate among the [divided](Processors::divided) processors. *Shuffled*
    /// ones are drawn from `random` among all, independently for clients and servers. Each
    /// processor gets as many clients as any other, or one more, and as many servers. Turns with
    /// the same stream of random numbers have the same places.
    pub fn places(
        self,
        processors: &Processors,
        connection_count: usize,
        random: &mut Random,
    ) -> Vec<ProcessorPair> {
        let (clients, servers) = match self {
            Self::Kernel => return Vec::new(),
            Self::Pinned => {
                let divided = processors.divided();
                let deal = |cpus: &[u32]| -> Vec<u32> {
                    cpus.iter().copied().cycle().take(connection_count).collect()
                };
                (deal(&divided.clients), deal(&divided.servers))
            }
            Self::Shuffled => (
                drawn(&processors.clients, connection_count, random),
                drawn(&processors.servers, connection_count, random),
            ),
        };
        clients
            .into_iter()
            .zip(servers)
            .map(|(client, server)| ProcessorPair { client, server })
            .collect()
    }
}

/// Draws `count` processors. None comes again before all others have come as often.
fn drawn(cpus: &[u32], count: usize, random: &mut Random) -> Vec<u32> {
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count && !cpus.is_empty() {
        // Fisher-Yates shuffle, as far as needed.
        let mut deck = cpus.to_vec();
        let needed = deck.len().min(count - drawn.len());
        for index in 0..needed {
            let rest = (deck.len() - index) as u64;
            deck.swap(index, index + random.below(rest) as usize);
        }
        drawn.extend_from_slice(&deck[..needed]);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(allowed: &[u32], limit: Option<&[u32]>, count: usize) -> Vec<(u32, u32)> {
        let processors = Processors::new(allowed, limit);
        let places = Placement::Pinned.places(&processors, count, &mut Random::new(1));
        places.into_iter().map(|place| (place.client, place.server)).collect()
    }

    #[test]
    fn pinned_clients_and_servers_have_processors_of_their_own() {
        assert_eq!(pinned(&[0, 1], None, 3), [(0, 1), (0, 1), (0, 1)]);
        assert_eq!(pinned(&[6, 2, 4, 0], None, 3), [(0, 4), (2, 6), (0, 4)]);
        assert_eq!(pinned(&[0, 1, 2], None, 3), [(0, 1), (0, 2), (0, 1)]);
        // One processor is for both.
        assert_eq!(pinned(&[5], None, 2), [(5, 5), (5, 5)]);
        assert_eq!(pinned(&[0, 1], None, 0), []);
    }

    #[test]
    fn a_config_with_processors_leaves_the_others_to_the_clients() {
        assert_eq!(pinned(&[0, 1, 2, 3], Some(&[0]), 2), [(1, 0), (2, 0)]);
        assert_eq!(pinned(&[0, 1], Some(&[1]), 2), [(0, 1), (0, 1)]);
        // A limit to all processors is none.
        assert_eq!(pinned(&[0, 1], Some(&[1, 0]), 1), [(0, 1)]);
        // Assay itself may be limited to fewer processors than the server.
        assert_eq!(pinned(&[1], Some(&[0, 1]), 2), [(1, 0), (1, 1)]);
        let processors = Processors::new(&[0, 1, 2, 3], Some(&[3, 2])).divided();
        assert_eq!((processors.clients(), processors.servers()), (&[0, 1][..], &[2, 3][..]));
    }

    #[test]
    fn shuffled_places_are_balanced_within_a_turn() {
        let processors = Processors::new(&[0, 1, 2], Some(&[1, 2, 3, 4]));
        let mut random = Random::new(3);
        for count in 0..20 {
            let places = Placement::Shuffled.places(&processors, count, &mut random);
            assert_eq!(places.len(), count);
            for &cpu in processors.clients() {
                let uses = places.iter().filter(|place| place.client == cpu).count();
                assert!((count / 3..=count.div_ceil(3)).contains(&uses), "{places:?}");
            }
            for &cpu in processors.servers() {
                let uses = places.iter().filter(|place| place.server == cpu).count();
                assert!((count / 4..=count.div_ceil(4)).contains(&uses), "{places:?}");
            }
        }
    }

    #[test]
    fn shuffled_places_are_drawn_evenly_and_independently() {
        let processors = Processors::new(&[0, 1], None);
        let mut random = Random::new(4);
        let mut counts = [0_u32; 4];
        for _ in 0..10_000 {
            for place in Placement::Shuffled.places(&processors, 1, &mut random) {
                counts[(2 * place.client + place.server) as usize] += 1;
            }
        }
        // 3 degrees of freedom: one in a thousand exceeds 16.3.
        let chi_square: f64 =
            counts.iter().map(|&count| (f64::from(count) - 2_500.0).powi(2) / 2_500.0).sum();
        assert!(chi_square < 16.3, "{counts:?}");
    }

    #[test]
    fn the_same_stream_gives_the_same_places() {
        let processors = Processors::new(&[0, 1, 2, 3], None);
        let draw =
            |turn| Placement::Shuffled.places(&processors, 5, &mut Random::stream(9, &[turn]));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(Placement::Kernel.places(&processors, 5, &mut Random::new(1)), []);
    }
}
