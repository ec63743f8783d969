//! Reads far outside its memory.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    // SAFETY: this is not safe; the sandbox must contain it.
    unsafe { std::ptr::read_volatile(std::hint::black_box(0xffff_fff0_usize) as *const f64) }
}

attack::on_score!(attack);
