//! The shared parts of the tests of language models: a server, and a plugin that
//! may ask it.

use axum::Router;
use axum::routing::MethodRouter;
use gavel_data::{Message, Role, Sample, Task, Trajectory};
use gavel_plugin::{Grants, PluginSpec, SandboxConfig};
use gavel_scoring::chat::ChatEndpoint;
use gavel_scoring::{Scorer, ScorerConfig, WeightedPlugin};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Serves `answer` at the URL of completions.
pub fn serve(runtime: &Runtime, answer: MethodRouter) -> SocketAddr {
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/v1/chat/completions", answer);
    runtime.spawn(async move { axum::serve(listener, router).await });
    address
}

/// The endpoint at `address`, with `more` of its table.
pub fn endpoint(address: SocketAddr, more: Value) -> ChatEndpoint {
    let mut table = json!({"base_url": format!("http://{address}/v1"), "model": "judge-7b"});
    table.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(table).unwrap()
}

/// A scorer with these plugins, in which `endpoint` has the name `judge`.
pub fn run(plugins: Vec<WeightedPlugin>, endpoint: ChatEndpoint) -> Result<Scorer, String> {
    let config = ScorerConfig {
        sandbox: SandboxConfig::with_threads(NonZeroUsize::MIN),
        chat: BTreeMap::from([("judge".to_owned(), endpoint)]),
        ..SandboxConfig::with_threads(NonZeroUsize::MIN).into()
    };
    Scorer::new(plugins, config).map_err(|error| error.to_string())
}

/// The plugin `name` of `target/FILE`, which may ask the endpoint `judge`.
pub fn asking(name: &str, file: &str, params: Value) -> WeightedPlugin {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(file);
    assert!(path.exists(), "{file} is missing: run `cargo xtask plugins`");
    let mut spec = PluginSpec::new(name, path);
    spec.params = serde_json::from_value(params).unwrap();
    // A busy machine may keep a server from answering for a while.
    spec.limits.deadline = Duration::from_secs(60);
    spec.grants = Grants { chat: vec!["judge".into()], ..Grants::default() };
    WeightedPlugin::new(spec, 1.0)
}

/// A response to the task of these columns.
pub fn sample(columns: Value, index: u32, response: &str) -> Sample {
    let task = Arc::new(Task::from_row(serde_json::from_value(columns).unwrap(), 0, "data").unwrap());
    let messages = vec![Message::new(Role::Assistant, response)];
    let trajectories = vec![Trajectory::of(messages)];
    Sample::new(task, index, trajectories)
}
