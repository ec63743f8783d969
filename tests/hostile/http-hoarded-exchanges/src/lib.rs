//! Keeps the answers of many servers, and reads none.

use attack::{Reference, Sample};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, OutgoingRequest, Scheme};

fn attack(_: &Sample, _: &Reference) -> f64 {
    let mut kept = Vec::new();
    for _ in 0..300 {
        let request = OutgoingRequest::new(Fields::new());
        let made = request.set_scheme(Some(&Scheme::Http)).and_then(|()| request.set_authority(Some("judge.example")));
        let made = made.and_then(|()| request.set_path_with_query(Some("/")));
        if made.is_err() {
            return 0.0;
        }
        if let Ok(answer) = outgoing_handler::handle(request, None) {
            answer.subscribe().block();
            kept.push(answer.get());
        }
    }
    kept.len() as f64
}

attack::on_score!(attack);
