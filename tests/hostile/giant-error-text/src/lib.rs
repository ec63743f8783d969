//! Fails with a text of 1 MiB.

use attack::{Failure, Reference, Sample, Verdict};

fn attack(_: &Sample, _: &Reference) -> Result<Verdict, Failure> {
    Err(Failure::internal(format!("it failed: {}", "é".repeat(1 << 19))))
}

attack::on_score!(attack);
