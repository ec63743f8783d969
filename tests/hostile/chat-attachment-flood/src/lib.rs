//! Asks 600 times at once what the attachment of its prompt shows.

use attack::chat::{self, Request};
use attack::{Reference, Sample};

fn attack(sample: &Sample, _: &Reference) -> f64 {
    let show = |_| sample.prompt().into_iter().fold(Request::new("judge"), Request::message);
    chat::complete((0..600).map(show).collect()).len() as f64
}

attack::on_score!(attack);
