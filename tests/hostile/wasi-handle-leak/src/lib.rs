//! Opens WASI's standard output and timers forever and never releases them.

use attack::{Reference, Sample};
use wasip2::cli::stdout::get_stdout;
use wasip2::clocks::monotonic_clock::subscribe_duration;

fn attack(_: &Sample, _: &Reference) -> f64 {
    loop {
        std::mem::forget(get_stdout());
        std::mem::forget(subscribe_duration(1));
    }
}

attack::on_score!(attack);
