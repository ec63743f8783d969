//! Sleeps for an hour, which costs a neighbour nothing and the run an hour.

use attack::{Reference, Sample};
use std::time::Duration;

fn attack(_: &Sample, _: &Reference) -> f64 {
    std::thread::sleep(Duration::from_secs(3600));
    1.0
}

attack::on_score!(attack);
