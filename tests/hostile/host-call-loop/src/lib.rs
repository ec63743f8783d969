//! Calls the host forever: every call is short, but their sum is not.

use attack::{Reference, Sample};

fn attack(sample: &Sample, _: &Reference) -> f64 {
    loop {
        std::hint::black_box(sample.task_id());
    }
}

attack::on_score!(attack);
