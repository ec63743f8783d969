//! Never returns from a group.

use attack::{Sample, Verdict};

fn attack(samples: &[Sample]) -> Vec<Verdict> {
    while std::hint::black_box(samples.len()) > 0 {}
    Vec::new()
}

attack::on_judge!(attack);
