//! Reads a response of 64 MiB; the score is its length.

use attack::{Reference, Sample};

fn attack(sample: &Sample, _: &Reference) -> f64 {
    sample.response().len() as f64
}

attack::on_score!(attack);
