//! A language model that plays a user: it asks why, and then ends the conversation.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A server of the chat-completions protocol; it ends when it is dropped.
pub struct PlayedUser {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Value>>>,
    _runtime: Runtime,
}

impl PlayedUser {
    /// Starts a server that answers only the first `most` requests; the others get a server's error.
    pub fn start(most: usize) -> Self {
        let (runtime, requests) = (Runtime::new().unwrap(), Arc::<Mutex<Vec<Value>>>::default());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let noted = requests.clone();
        let answer = move |body: String| {
            let request: Value = serde_json::from_str(&body).unwrap();
            let own = request["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant");
            // The row's prompt is the first message of the user.
            let text = if own.count() < 2 { "And why is that?" } else { "I see. ###STOP###" };
            let mut noted = noted.lock().unwrap();
            noted.push(request);
            let status = if noted.len() > most { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
            let choices = json!([{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]);
            let usage = json!({"prompt_tokens": 30, "completion_tokens": 5});
            std::future::ready((status, json!({"choices": choices, "usage": usage}).to_string()))
        };
        let router = Router::new().route("/v1/chat/completions", post(answer));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, requests, _runtime: runtime }
    }

    /// The bodies of its requests.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}
