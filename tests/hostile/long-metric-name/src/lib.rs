//! Gives a metric with a name of 65 bytes, one too many.

use attack::{Reference, Sample, Score};

fn attack(_: &Sample, _: &Reference) -> Score {
    Score::new(1.0).metric("x".repeat(65), 1.0)
}

attack::on_score!(attack);
