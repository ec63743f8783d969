//! Takes a million pieces of memory of 16 bytes each, and keeps them.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    let pieces: Vec<Box<u128>> = (0..1_000_000).map(|piece| Box::new(std::hint::black_box(piece))).collect();
    std::hint::black_box(&pieces);
    (pieces.len() / 1_000_000) as f64
}

attack::on_score!(attack);
