//! Who answers an attack from outside: two language models, a program, a server.

use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_plugin::{
    CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, HttpResponder, Limits, ProgramSpec, Sandbox,
};
use serde_json::{Map, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// Gives a sandbox what attacks may be granted.
pub fn connect(sandbox: &Sandbox, child: PathBuf) {
    let several = NonZeroUsize::new(8).unwrap();
    sandbox.add_chat("judge", Arc::new(Model { answer: 1 }), several);
    sandbox.add_chat("talker", Arc::new(Model { answer: 16 << 20 }), several);
    let limits = Limits { memory: 16 << 20, ..Limits::default() };
    sandbox.add_program(ProgramSpec { name: "child".into(), path: child, limits }).unwrap();
    sandbox.answer_http(Arc::new(Server));
}

/// Reads a request in the form in which an endpoint sends it, and answers with
/// this many bytes.
struct Model {
    answer: usize,
}

impl ChatModel for Model {
    fn complete(
        self: Arc<Self>,
        request: ChatRequest,
        meter: CallMeter,
    ) -> BoxFuture<'static, Result<ChatBody, ChatError>> {
        async move {
            let mut chunks = request.body(&Map::new()).unwrap().chunks();
            while meter.work(|| chunks.next()).is_some() {
                tokio::task::yield_now().await;
            }
            let message = json!({"role": "assistant", "content": "1".repeat(self.answer)});
            Ok(ChatBody::of(&json!({"choices": [{"message": message}]}), &meter)?)
        }
        .boxed()
    }
}

struct Server;

impl HttpResponder for Server {
    fn respond(&self, _: http::Request<bytes::Bytes>) -> Option<http::Response<bytes::Bytes>> {
        Some(http::Response::new(bytes::Bytes::from_static(b"1")))
    }
}
