//! Abstains with a reason of 1 MiB.

use attack::{Failure, Reference, Sample, Verdict};

fn attack(_: &Sample, _: &Reference) -> Result<Verdict, Failure> {
    Ok(Verdict::abstain(format!("not mine: {}", "é".repeat(1 << 19))))
}

attack::on_score!(attack);
