//! The answer of an endpoint to a plugin: from the bytes of an HTTP response to
//! the plugin's verdict.

use gavel_data::{Blame, Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{Grants, Limits, PluginSpec, SandboxConfig};
use gavel_scoring::{Scorer, ScorerConfig, WeightedPlugin};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// A server with set answers, and a plugin that asks it.
struct Exchange {
    scorer: Scorer,
    sample: Arc<Sample>,
    answer: Arc<Mutex<Vec<u8>>>,
}

static EXCHANGE: LazyLock<Exchange> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(Mutex::new(Vec::new()));
    let said = answer.clone();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            // A connection that the client gave up does not matter to the
            // server.
            let _ = connection.and_then(|stream| say(&stream, &said));
        }
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests/asks.wasm");
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    let mut spec = PluginSpec::new("asks", path);
    // A busy machine takes many times longer, and time that ran out would be no answer.
    spec.limits = Limits { cpu: Duration::from_secs(60), deadline: Duration::from_secs(120), ..Limits::default() };
    spec.grants = Grants { chat: vec!["judge".into()], ..Grants::default() };
    // One attempt: the endpoint's answer is the same each time.
    let endpoint = json!({"base_url": format!("http://{address}/v1"), "model": "judge", "retries": 0});
    let config = ScorerConfig {
        chat: BTreeMap::from([("judge".to_owned(), serde_json::from_value(endpoint).unwrap())]),
        ..SandboxConfig { memory: 1 << 30, ..SandboxConfig::with_threads(NonZeroUsize::MIN) }.into()
    };
    let row = serde_json::from_str(r#"{"prompt": "1 + 1?"}"#).unwrap();
    let messages = vec![Message::new(Role::Assistant, "2")];
    let trajectories = vec![Trajectory::of(messages)];
    let task = Arc::new(Task::from_row(row, 0, "train").unwrap());
    let scorer = Scorer::new(vec![WeightedPlugin::new(spec, 1.0)], config).unwrap();
    Exchange { scorer, sample: Arc::new(Sample::new(task, 0, trajectories)), answer }
});

/// Reads a request and answers it. The answer ends with the connection.
fn say(stream: &TcpStream, answer: &Mutex<Vec<u8>>) -> std::io::Result<()> {
    let mut request = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while request.read_line(&mut line)? > 2 {
        if let Some(("content-length", value)) = line.trim_end().split_once(": ") {
            length = value.parse().unwrap();
        }
        line.clear();
    }
    request.take(length).read_to_end(&mut Vec::new())?;
    let bytes = answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut stream = stream;
    stream.write_all(&bytes)?;
    stream.shutdown(Shutdown::Write)
}

pub(crate) fn read(input: &[u8]) -> bool {
    let Exchange { scorer, sample, answer } = &*EXCHANGE;
    *answer.lock().unwrap_or_else(PoisonError::into_inner) = input.to_vec();
    let found = scorer.wait(scorer.start_alone(sample.clone(), 1));
    let outcome = found.plugins.get("asks").map(|evaluation| &evaluation.outcome);
    match outcome {
        Some(Outcome::Scored(score)) => assert!(score.value.is_finite(), "{score:?}"),
        Some(Outcome::Unavailable(_) | Outcome::Fault { whose: Blame::Plugin | Blame::Input, .. }) => {}
        other => panic!("an answer comes to {other:?}"),
    }
    matches!(outcome, Some(Outcome::Scored(_)))
}
