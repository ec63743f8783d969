//! Panics, which is a trap with a message on the standard error.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    panic!("this plugin panics on every sample")
}

attack::on_score!(attack);
