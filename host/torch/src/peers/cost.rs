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
    /// When the rank waited while some did.
    waits: Vec<[Instant; 2]>,
    /// Until when overlapped time is counted.
    counted: Option<Instant>,
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
        let from = self.counted.map_or(begun, |counted| counted.max(begun));
        let until = ended.min(wait[0]);
        if from < until {
            let waited = |[start, end]: &[Instant; 2]| (*end).min(until).saturating_duration_since((*start).max(from));
            let waited: Duration = self.waits.iter().map(waited).sum();
            self.cost.overlapped += (until - from).saturating_sub(waited);
            self.counted = Some(until);
        }
        self.running = self.running.saturating_sub(1);
        if self.running == 0 {
            self.waits.clear();
        } else {
            self.waits.push(wait);
        }
    }
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
        let operations = [Operation::Reduce(8, 1), Operation::Reduce(8, 0), Operation::Gather(4)];
        operations.iter().for_each(|operation| meter.begin(operation, 0, 4));
        // Two sums from 0 and 2 to 10 and 14. From 5 to 8 the rank waits for another operation, and from 20 for nothing.
        meter.end(at(5), at(8), [at(5), at(8)]);
        meter.end(at(0), at(10), [at(20), at(20)]);
        meter.end(at(2), at(14), [at(20), at(20)]);
        let seconds = Duration::from_secs;
        let expected = Cost {
            reduce_bytes: 8 + 6,
            gather_bytes: 12,
            waited: seconds(3),
            overlapped: seconds(11),
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
