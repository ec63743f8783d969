//! Asks for 1 GiB at once, and aborts if that is refused.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    std::hint::black_box(vec![1_u8; 1 << 30]).len() as f64
}

attack::on_score!(attack);
