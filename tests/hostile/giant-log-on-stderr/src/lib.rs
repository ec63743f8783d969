//! Prints 64 MiB to the standard error, and continues if that fails.

use attack::{Reference, Sample};
use std::io::Write;

fn attack(_: &Sample, _: &Reference) -> f64 {
    let block = vec![b'x'; 64 << 10];
    for _ in 0..1024 {
        // Whether it is refused makes no difference to the score.
        let _ = std::io::stderr().write_all(&block);
    }
    1.0
}

attack::on_score!(attack);
