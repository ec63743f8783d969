//! A server in the place of a tracker.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

/// A request that the server got.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) key: Option<String>,
}

/// How the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Well,
    /// With an error, and it does nothing.
    Fails,
    /// With what is no JSON, after it has done what it was asked.
    Garbage,
    /// Never, after it has done what it was asked.
    Hangs,
    /// With an error that has the key that it was sent.
    Tells,
}

type Answer = Box<dyn FnMut(&Asked) -> (u16, Value) + Send>;

struct Shared {
    mode: Mutex<Mode>,
    asked: Mutex<Vec<Asked>>,
    answer: Mutex<Answer>,
}

pub(super) struct Fake {
    pub(super) url: String,
    shared: Arc<Shared>,
    _runtime: Runtime,
}

impl Fake {
    pub(super) fn start(answer: impl FnMut(&Asked) -> (u16, Value) + Send + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Arc::new(Shared {
            mode: Mutex::new(Mode::Well),
            asked: Mutex::default(),
            answer: Mutex::new(Box::new(answer)),
        });
        let router = Router::new().fallback(handle).with_state(shared.clone());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { match gavel_http::serve(listener, router).await {} });
        Self { url, shared, _runtime: runtime }
    }

    pub(super) fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
    }

    /// What it was asked since this was called last.
    pub(super) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.shared.asked.lock().unwrap())
    }
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let key = ["authorization", "x-trackio-write-token"].into_iter().find_map(|name| headers.get(name));
    let asked = Asked {
        method,
        path: uri.to_string(),
        body: serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into()),
        key: key.map(|key| key.to_str().unwrap().to_owned()),
    };
    shared.asked.lock().unwrap().push(asked.clone());
    let mode = *shared.mode.lock().unwrap();
    if mode == Mode::Fails {
        return (StatusCode::SERVICE_UNAVAILABLE, "busy".to_owned());
    }
    let (status, answer) = (shared.answer.lock().unwrap())(&asked);
    match mode {
        Mode::Hangs => std::future::pending().await,
        Mode::Garbage => (StatusCode::OK, "<html>no</html>".to_owned()),
        Mode::Tells => (StatusCode::UNAUTHORIZED, format!("no access for {:?}", asked.key)),
        _ => (StatusCode::from_u16(status).unwrap(), answer.to_string()),
    }
}
