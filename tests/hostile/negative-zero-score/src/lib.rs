//! Gives the score -0.0, which equals 0.0 and is not written like it.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    -0.0
}

attack::on_score!(attack);
