//! Gives a score that is not a number.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    f64::NAN
}

attack::on_score!(attack);
