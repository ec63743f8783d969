//! Waits for a day to pass by reading the clock.

use attack::{Reference, Sample};
use std::time::{Duration, Instant};

fn attack(_: &Sample, _: &Reference) -> f64 {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(86_400) {}
    1.0
}

attack::on_score!(attack);
