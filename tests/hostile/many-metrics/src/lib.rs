//! Gives 10,000 metrics: each would be a column of the run's log.

use attack::{Reference, Sample, Score};

fn attack(_: &Sample, _: &Reference) -> Score {
    (0..10_000).fold(Score::new(1.0), |score, index| score.metric(format!("metric-{index}"), 1.0))
}

attack::on_score!(attack);
