//! Panics with a message of 512 KiB, which the log's budget allows.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    panic!("it failed: {}", "x".repeat(512 << 10))
}

attack::on_score!(attack);
