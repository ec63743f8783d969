//! What the operations of several ranks cost one of them.

use std::time::{Duration, Instant};

/// The cost of the operations of a rank since the last reading; nothing in a run of one process. What ranks exchange
/// over the store is not in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes that this rank sent for sums that all ranks get, without headers, as Gloo sends them: twice around a ring.
    pub sum_bytes: u64,
    /// The same for sums that one rank gets: once around a ring, then to that rank.
    pub reduce_bytes: u64,
    /// The same for tensors of one rank that all get: down a binomial tree.
    pub broadcast_bytes: u64,
    /// The same for values of all ranks that all get: once around a ring.
    pub gather_bytes: u64,
    /// How long the rank waited in operations.
    pub waited: Duration,
    /// How long sums ran in the background while the rank did not wait. Sums at the same time count once.
    pub overlapped: Duration,
}

/// An operation, and the bytes of its tensor on one rank.
pub(super) enum Operation {
    Sum(usize),
    Reduce(usize, usize),
    Broadcast(usize, usize),
    Gather(usize),
}

/// The cost so far.
#[derive(Default)]
pub(super) struct Meter {
    cost: Cost,
    /// How many operations run in the background.
    running: usize,
    /// When operations ran, and when the rank waited for one, since none ran.
    ran: Vec<[Instant; 2]>,
    waits: Vec<[Instant; 2]>,
}

impl Meter {
    pub fn take(&mut self) -> Cost {
        std::mem::take(&mut self.cost)
    }

    /// Notes an operation of the rank `rank` among `size`.
    pub fn begin(&mut self, operation: &Operation, rank: usize, size: usize) {
        // Around the ring each rank sends all parts but one.
        let around = |bytes: usize| bytes * (size - 1) / size;
        let (total, sent) = match *operation {
            Operation::Sum(bytes) => (&mut self.cost.sum_bytes, 2 * around(bytes)),
            Operation::Reduce(bytes, to) if to == rank => (&mut self.cost.reduce_bytes, around(bytes)),
            Operation::Reduce(bytes, _) => (&mut self.cost.reduce_bytes, bytes),
            Operation::Broadcast(bytes, from) => {
                (&mut self.cost.broadcast_bytes, bytes * children((rank + size - from) % size, size))
            }
            Operation::Gather(bytes) => (&mut self.cost.gather_bytes, bytes * (size - 1)),
        };
        *total += sent as u64;
        self.running += 1;
    }

    /// Notes that an operation, which ran from `begun` to `ended`, was waited for from `wait[0]` to `wait[1]`.
    pub fn end(&mut self, begun: Instant, ended: Instant, wait: [Instant; 2]) {
        self.cost.waited += wait[1] - wait[0];
        self.ran.push([begun, ended]);
        self.waits.push(wait);
        self.running = self.running.saturating_sub(1);
        if self.running == 0 {
            // They end in another order than they are waited for.
            let (ran, waits) = (std::mem::take(&mut self.ran), std::mem::take(&mut self.waits));
            let either = covered(ran.into_iter().chain(waits.iter().copied()).collect());
            self.cost.overlapped += either.saturating_sub(covered(waits));
        }
    }
}

/// How long at least one of these times lasts.
fn covered(mut times: Vec<[Instant; 2]>) -> Duration {
    times.sort();
    let mut until: Option<Instant> = None;
    let mut total = Duration::ZERO;
    for [start, end] in times {
        let start = until.map_or(start, |until| until.max(start));
        total += end.saturating_duration_since(start);
        until = Some(until.map_or(end, |until| until.max(end)));
    }
    total
}

/// To how many ranks the one with the number `rank`, counted from the root, sends in a binomial tree: in each round
/// after the one in which it got the tensor, to the rank that is as far away as ranks have it.
fn children(rank: usize, size: usize) -> usize {
    let distances = (0..usize::BITS).map(|round| 1usize << round).skip_while(|distance| *distance <= rank);
    distances.take_while(|distance| rank + distance < size).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_but_the_root_gets_a_broadcast_once() {
        for size in 2..20 {
            assert_eq!((0..size).map(|rank| children(rank, size)).sum::<usize>(), size - 1, "{size} ranks");
        }
        assert_eq!((0..8).map(|rank| children(rank, 8)).collect::<Vec<_>>(), [3, 2, 1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn time_in_the_background_counts_once_and_not_while_the_rank_waits() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut meter = Meter::default();
        let operations = [Operation::Reduce(8, 1), Operation::Reduce(8, 0), Operation::Gather(4), Operation::Gather(4)];
        operations.iter().for_each(|operation| meter.begin(operation, 0, 4));
        // Two sums from 0 and 2 to 10 and 14. From 5 to 8 the rank waits for another operation, from 16 to 17 for one that
        // began at 15, and from 20 for nothing.
        meter.end(at(5), at(8), [at(5), at(8)]);
        meter.end(at(15), at(17), [at(16), at(17)]);
        meter.end(at(0), at(10), [at(20), at(20)]);
        meter.end(at(2), at(14), [at(20), at(20)]);
        let seconds = Duration::from_secs;
        let expected = Cost {
            reduce_bytes: 8 + 6,
            gather_bytes: 24,
            waited: seconds(4),
            overlapped: seconds(12),
            ..Cost::default()
        };
        assert_eq!(meter.take(), expected);
        // One that is waited for at once, and one that is waited for in part.
        meter.begin(&Operation::Sum(400), 0, 4);
        meter.end(at(30), at(33), [at(30), at(33)]);
        meter.begin(&Operation::Sum(400), 0, 4);
        meter.end(at(40), at(45), [at(43), at(45)]);
        let expected = Cost { sum_bytes: 1200, waited: seconds(5), overlapped: seconds(3), ..Cost::default() };
        assert_eq!(meter.take(), expected);
        assert_eq!(meter.take(), Cost::default());
    }
}
