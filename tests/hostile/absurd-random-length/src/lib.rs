//! Asks the host for more random bytes than any machine has memory.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    wasip2::random::random::get_random_bytes(u64::MAX).len() as f64
}

attack::on_score!(attack);
