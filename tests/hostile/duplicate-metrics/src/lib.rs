//! Gives the same metric twice, with two values.

use attack::{Reference, Sample, Score};

fn attack(_: &Sample, _: &Reference) -> Score {
    Score::new(1.0).metric("length", 1.0).metric("length", 2.0)
}

attack::on_score!(attack);
