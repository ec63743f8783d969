//! Gives a metric that is not a number.

use attack::{Reference, Sample, Score};

fn attack(_: &Sample, _: &Reference) -> Score {
    Score::new(1.0).metric("length", f64::NAN)
}

attack::on_score!(attack);
