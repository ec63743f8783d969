//! Sends one request after another, and waits for none.

use attack::{Reference, Sample};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, OutgoingRequest, Scheme};

fn attack(_: &Sample, _: &Reference) -> f64 {
    loop {
        let request = OutgoingRequest::new(Fields::new());
        let made = request.set_scheme(Some(&Scheme::Http)).and_then(|()| request.set_authority(Some("judge.example")));
        let made = made.and_then(|()| request.set_path_with_query(Some("/")));
        if made.is_err() {
            return 0.0;
        }
        drop(outgoing_handler::handle(request, None));
    }
}

attack::on_score!(attack);
