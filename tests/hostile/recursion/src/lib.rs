//! Calls itself without end; its frames need no linear memory.

use attack::{Reference, Sample};
use std::hint::black_box;

fn deeper(depth: u64) -> u64 {
    if depth == u64::MAX { 0 } else { black_box(deeper(black_box(depth + 1))) + 1 }
}

fn attack(_: &Sample, _: &Reference) -> f64 {
    deeper(0) as f64
}

attack::on_score!(attack);
