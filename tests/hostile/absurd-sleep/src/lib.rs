//! Sleeps for as long as the clock can count, twice: a host that adds the
//! two overflows.

use attack::{Reference, Sample};
use wasip2::clocks::monotonic_clock::subscribe_duration;

fn attack(_: &Sample, _: &Reference) -> f64 {
    for _ in 0..2 {
        subscribe_duration(u64::MAX).block();
    }
    1.0
}

attack::on_score!(attack);
