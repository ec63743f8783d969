//! Fake servers, with the answers that a test sets.

use crate::script::Script;
use bytes::Bytes;
use gavel_plugin::HttpResponder;
use http::{Request, Response};
use std::sync::Arc;

/// Stands in for all servers. Grants still decide which of them a plugin may
/// ask. All clones are the same fake.
#[derive(Clone)]
pub struct FakeHttp(Arc<Script<Request<Bytes>, Option<Response<Bytes>>>>);

impl FakeHttp {
    /// Answers one request after another with these statuses and bodies. Any
    /// further request is refused, as if no server listened.
    pub fn replies<T: Into<Bytes>>(replies: impl IntoIterator<Item = (u16, T)>) -> Self {
        let response = |(status, body): (u16, T)| {
            let mut response = Response::new(body.into());
            // A number that is not a status becomes a server's failure.
            *response.status_mut() =
                http::StatusCode::from_u16(status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
            Some(response)
        };
        Self(Arc::new(Script::in_order(replies.into_iter().map(response))))
    }

    /// Answers each request with the result of `answer`; `None` means that no
    /// server listens.
    pub fn answering(answer: impl Fn(&Request<Bytes>) -> Option<Response<Bytes>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Script::function(answer)))
    }

    /// The requests, in order.
    pub fn requests(&self) -> Vec<Request<Bytes>> {
        self.0.asked()
    }
}

impl HttpResponder for FakeHttp {
    fn respond(&self, request: Request<Bytes>) -> Option<Response<Bytes>> {
        self.0.ask(request).0.flatten()
    }
}
