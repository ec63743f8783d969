//! Calls itself with large arrays in each frame, so that the stack in linear
//! memory ends before the machine's.

use attack::{Reference, Sample};
use std::hint::black_box;

fn deeper(above: &[u8; 65536]) -> u8 {
    let mut frame = [above[0].wrapping_add(1); 65536];
    black_box(&mut frame);
    if above[0] != frame[0] { deeper(&frame).wrapping_add(frame[1]) } else { 0 }
}

fn attack(_: &Sample, _: &Reference) -> f64 {
    f64::from(deeper(&[0; 65536]))
}

attack::on_score!(attack);
