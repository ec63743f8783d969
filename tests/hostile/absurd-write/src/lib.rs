//! Has the host write more zeroes to the standard output than any machine
//! has memory.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> bool {
    wasip2::cli::stdout::get_stdout().blocking_write_zeroes_and_flush(u64::MAX).is_err()
}

attack::on_score!(attack);
