//! Runs more children at once than a call may.

use attack::exec::{self, Job};
use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    exec::run((0..5000).map(|_| Job::new("child")).collect()).len() as f64
}

attack::on_score!(attack);
