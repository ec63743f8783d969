//! Scores by the date, so that verdicts would not repeat.

use attack::{Reference, Sample, Score};
use std::time::{SystemTime, UNIX_EPOCH};
use wasip2::clocks::{monotonic_clock, wall_clock};

fn attack(_: &Sample, _: &Reference) -> Score {
    let readings = [monotonic_clock::now(), monotonic_clock::resolution(), wall_clock::now().nanoseconds.into()];
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Score::new(since_1970.as_secs() as f64).note(format!("{readings:?}"))
}

attack::on_score!(attack);
