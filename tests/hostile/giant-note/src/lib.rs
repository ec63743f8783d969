//! Returns a note of 1 MiB, which the budget allows and no log wants.

use attack::{Reference, Sample, Score};

fn attack(_: &Sample, _: &Reference) -> Score {
    Score::new(1.0).note("é".repeat(1 << 19))
}

attack::on_score!(attack);
