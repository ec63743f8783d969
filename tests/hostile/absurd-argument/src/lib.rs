//! Hands the host the name of a column that is 8 MiB long.

use attack::{Reference, Sample};

fn attack(_: &Sample, reference: &Reference) -> bool {
    reference.column(&"x".repeat(8 << 20)).is_none()
}

attack::on_score!(attack);
