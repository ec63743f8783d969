//! Returns a note of 16 MiB.

use attack::{Reference, Sample, Score};

fn attack(_: &Sample, _: &Reference) -> Score {
    Score::new(1.0).note("x".repeat(16 << 20))
}

attack::on_score!(attack);
