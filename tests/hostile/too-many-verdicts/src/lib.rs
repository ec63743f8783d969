//! Judges a sample that does not exist.

use attack::{Sample, Score, Verdict};

fn attack(samples: &[Sample]) -> Vec<Verdict> {
    (0..=samples.len()).map(|_| Score::new(1.0).into()).collect()
}

attack::on_judge!(attack);
