//! Ends its process with the status 0, as if it were done.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    std::process::exit(0)
}

attack::on_score!(attack);
