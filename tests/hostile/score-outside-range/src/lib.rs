//! Declares scores from 0 to 1 and gives 2.

use attack::{Info, Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    2.0
}

attack::on_score!(attack, Info::new("score-outside-range", "1").score_range(0.0, 1.0));
