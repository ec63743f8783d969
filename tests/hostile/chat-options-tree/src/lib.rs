//! Sends options that are small as a text and large as values.

use attack::chat::{self, Request};
use attack::{Reference, Sample};
use serde_json::Value;

fn attack(_: &Sample, _: &Reference) -> f64 {
    let request = |_| Request::new("judge").option("x", Value::Array(vec![Value::Array(Vec::new()); 80_000]));
    chat::complete((0..16).map(request).collect()).len() as f64
}

attack::on_score!(attack);
