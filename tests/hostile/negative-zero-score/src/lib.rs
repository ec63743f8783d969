//! Gives the score -0.0, which equals 0.0 but is written differently.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    -0.0
}

attack::on_score!(attack);
