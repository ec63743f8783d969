//! Judges only the first sample of a group.

use attack::{Sample, Score, Verdict};

fn attack(samples: &[Sample]) -> Vec<Verdict> {
    samples.iter().take(1).map(|_| Score::new(1.0).into()).collect()
}

attack::on_judge!(attack);
