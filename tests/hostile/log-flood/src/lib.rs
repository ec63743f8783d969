//! Prints forever, a byte at a time.

use attack::{Reference, Sample};
use std::io::Write;

fn attack(_: &Sample, _: &Reference) -> f64 {
    loop {
        // Whether it is refused makes no difference.
        let _ = std::io::stderr().write_all(b"x");
    }
}

attack::on_score!(attack);
