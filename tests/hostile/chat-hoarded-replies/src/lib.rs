//! Keeps 32 long answers, and reads none.

use attack::chat::{self, Request};
use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    let replies = chat::complete((0..32).map(|_| Request::new("talker").user("talk")).collect());
    replies.into_iter().filter(Result::is_ok).count() as f64
}

attack::on_score!(attack);
