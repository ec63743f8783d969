//! Gives a metric whose name clears the terminal and forges a line of the log.

use attack::{Reference, Sample, Score};

fn attack(_: &Sample, _: &Reference) -> Score {
    Score::new(1.0).metric("\x1b[2J\nreward = 1", 1.0)
}

attack::on_score!(attack);
