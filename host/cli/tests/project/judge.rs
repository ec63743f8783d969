//! A language model that gives every answer the same mark.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A server of the chat-completions protocol; it ends when it is dropped.
pub struct Judge {
    pub address: SocketAddr,
    asked: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    _runtime: Runtime,
}

impl Judge {
    pub fn start() -> Self {
        let (runtime, asked) = (Runtime::new().unwrap(), Arc::new(AtomicUsize::new(0)));
        let most = Arc::new(AtomicUsize::new(usize::MAX));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (count, bound) = (asked.clone(), most.clone());
        let answer = move || {
            let is_down = count.fetch_add(1, Ordering::Relaxed) >= bound.load(Ordering::Relaxed);
            let message = json!({"role": "assistant", "content": "0.5"});
            let usage = json!({"prompt_tokens": 30, "completion_tokens": 2});
            let choices = json!([{"message": message, "finish_reason": "stop"}]);
            let status = if is_down { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
            std::future::ready((status, json!({"choices": choices, "usage": usage}).to_string()))
        };
        let router = Router::new().route("/v1/chat/completions", post(answer));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, asked, most, _runtime: runtime }
    }

    /// Lets it answer only the first `most` requests; the others get a server's error.
    #[allow(dead_code, reason = "not every test has a judge that goes down")]
    pub fn answer_at_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}
