//! Opens the same trajectory forever and never releases it.

use attack::{Reference, Sample};

fn attack(sample: &Sample, _: &Reference) -> f64 {
    loop {
        std::mem::forget(sample.trajectory(0));
    }
}

attack::on_score!(attack);
