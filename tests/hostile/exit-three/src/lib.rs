//! Ends its process with the status 3, as if it were done.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    std::process::exit(3)
}

attack::on_score!(attack);
