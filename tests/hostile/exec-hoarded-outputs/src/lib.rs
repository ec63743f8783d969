//! Runs many children that print all that they may.

use attack::exec::{self, Job};
use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    exec::run((0..200).map(|_| Job::new("child").args(["flood"])).collect()).len() as f64
}

attack::on_score!(attack);
