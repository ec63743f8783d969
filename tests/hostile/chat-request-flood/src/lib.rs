//! Asks a hundred questions again and again, and takes no answer for one.

use attack::chat::{self, Request};
use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> f64 {
    loop {
        drop(chat::complete((0..100).map(|_| Request::new("judge").user("again")).collect()));
    }
}

attack::on_score!(attack);
