//! Never returns and never waits.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    loop {
        std::hint::black_box(());
    }
}

attack::on_score!(attack);
