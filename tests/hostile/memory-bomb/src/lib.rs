//! Takes memory until it is refused, which the allocator answers with a trap.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    let mut blocks = Vec::new();
    loop {
        blocks.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}

attack::on_score!(attack);
