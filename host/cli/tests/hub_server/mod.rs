//! A server with the API of the Hugging Face hub, and a second server for its large files.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Response, StatusCode};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The only revisions are `main`, `v1` and this commit.
pub const COMMIT: &str = "c0ffee";
pub const TOKEN: &str = "hf_not-to-be-shown";
/// Where the server of large files has them.
const MOVED: &str = "/moved";
/// The repository that only requests with the token may read.
pub const GATED: &str = "tiny/gated";

#[derive(Default)]
pub struct State {
    /// The files of each repository, by its page.
    pub repositories: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// Paths that were requested, with `from N` if not from the first byte.
    pub asked: Vec<String>,
    /// Names of files of which the next answer has only one half.
    pub cut: BTreeSet<String>,
    /// Names of files that are sent with a wrong byte.
    pub damaged: BTreeSet<String>,
    /// Whether the server of large files was ever given a token.
    pub is_token_elsewhere: bool,
}

pub struct HubServer {
    pub endpoint: String,
    state: Arc<Mutex<State>>,
    _runtime: Runtime,
}

impl HubServer {
    pub fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let listen = || runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (hub, large) = (listen(), listen());
        let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let (endpoint, elsewhere) = (address(&hub), address(&large));
        let state = Arc::<Mutex<State>>::default();
        let (of_hub, of_large) = (state.clone(), state.clone());
        let on_hub = move |request: Request| std::future::ready(of_hub.lock().unwrap().answer(&request, &elsewhere));
        let on_large = move |request: Request| {
            let mut state = of_large.lock().unwrap();
            state.is_token_elsewhere |= request.headers().contains_key("authorization");
            let path = request.uri().path().to_owned();
            std::future::ready(match path.strip_prefix(MOVED) {
                Some(path) => state.content(path, &request),
                // It redirects once more, within itself.
                None => redirect(&format!("{MOVED}{path}")),
            })
        };
        runtime.spawn(async { axum::serve(hub, Router::new().fallback(on_hub)).await });
        runtime.spawn(async { axum::serve(large, Router::new().fallback(on_large)).await });
        Self { endpoint, state, _runtime: runtime }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The paths that were requested since the last call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }
}

impl State {
    fn answer(&mut self, request: &Request, elsewhere: &str) -> Response<Body> {
        let path = request.uri().path().trim_start_matches('/').to_owned();
        let token = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
        if let Some(rest) = path.strip_prefix("api/") {
            self.asked.push(path.clone());
            let (page, revision) = rest.split_once("/revision/").unwrap();
            let page = page.strip_prefix("models/").unwrap_or(page);
            let Some(files) = self.repositories.get(page) else {
                // Without a token, the hub does not tell a hidden repository from a missing one.
                let status = if token.is_some() { StatusCode::NOT_FOUND } else { StatusCode::UNAUTHORIZED };
                return refused(status, "RepoNotFound", "Repository not found");
            };
            if ![COMMIT, "main", "v1"].contains(&revision) {
                return refused(StatusCode::NOT_FOUND, "RevisionNotFound", "Invalid rev id");
            }
            assert_eq!(request.uri().query(), Some("blobs=true"));
            let files: Vec<Value> = files.iter().map(|(name, content)| listed(name, content)).collect();
            return Response::new(json!({"sha": COMMIT, "siblings": files}).to_string().into());
        }
        let (page, file) = path.split_once("/resolve/").unwrap();
        if page == GATED && token != Some(format!("Bearer {TOKEN}")) {
            let status = if token.is_some() { StatusCode::FORBIDDEN } else { StatusCode::UNAUTHORIZED };
            return refused(status, "GatedRepo", "Access to model tiny/gated is restricted");
        }
        if is_large(file) {
            return redirect(&format!("{elsewhere}/{path}"));
        }
        self.content(&path, request)
    }

    fn content(&mut self, path: &str, request: &Request) -> Response<Body> {
        let (page, file) = path.trim_start_matches('/').split_once("/resolve/").unwrap();
        let name = file.strip_prefix(COMMIT).unwrap().trim_start_matches('/');
        let mut content = self.repositories[page][name].clone();
        let range = request.headers().get("range").map(|value| value.to_str().unwrap().to_owned());
        let start = range.map(|range| range["bytes=".len()..].trim_end_matches('-').parse::<usize>().unwrap());
        self.asked.push(match start {
            Some(start) => format!("{page}/{name} from {start}"),
            None => format!("{page}/{name}"),
        });
        if self.damaged.contains(name) {
            content[0] ^= 1;
        }
        if self.cut.remove(name) {
            content.truncate(content.len() / 2);
        }
        let status = if start.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        Response::builder().status(status).body(content[start.unwrap_or(0)..].to_vec().into()).unwrap()
    }
}

fn redirect(to: &str) -> Response<Body> {
    Response::builder().status(302).header("location", to).body(Body::empty()).unwrap()
}

fn is_large(name: &str) -> bool {
    name.ends_with(".safetensors")
}

fn listed(name: &str, content: &[u8]) -> Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let with_header = [format!("blob {}\0", content.len()).as_bytes(), content].concat();
    let git = hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, &with_header).as_ref());
    let mut file = json!({"rfilename": name, "size": content.len(), "blobId": git});
    if is_large(name) {
        let sha256 = hex(digest(&SHA256, content).as_ref());
        file["lfs"] = json!({"sha256": sha256, "size": content.len(), "pointerSize": 134});
    }
    file
}

fn refused(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let response = Response::builder().status(status).header("x-error-code", code).header("x-error-message", message);
    response.body(Body::empty()).unwrap()
}
