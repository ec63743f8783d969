//! Calls itself without end; its frames need no linear memory.

use attack::{Reference, Sample};
use std::hint::black_box;

/// No loop computes the same: the steps after the calls are not associative. A `black_box` would have a place in linear
/// memory in each frame.
#[inline(never)]
fn deeper(depth: u64) -> u64 {
    if depth == u64::MAX { 0 } else { deeper(depth + 1).rotate_left(1) ^ depth }
}

fn attack(_: &Sample, _: &Reference) -> f64 {
    deeper(black_box(0)) as f64
}

attack::on_score!(attack);
