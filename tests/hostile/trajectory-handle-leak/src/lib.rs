//! Opens the same trajectory for ever and never lets go of it.

use attack::{Reference, Sample};

fn attack(sample: &Sample, _: &Reference) -> f64 {
    loop {
        std::mem::forget(sample.trajectory(0));
    }
}

attack::on_score!(attack);
