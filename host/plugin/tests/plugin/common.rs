//! The shared parts of the tests of grants.

use gavel_data::{Evaluation, Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{Sandbox, SandboxConfig};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub fn guest(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/guests/{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path
}

pub fn sandbox() -> Sandbox {
    Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap())).unwrap()
}

pub fn sample() -> Arc<Sample> {
    let columns = serde_json::from_value(json!({"prompt": "1 + 1?", "answer": "2"})).unwrap();
    let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, "2")]);
    let task = Arc::new(Task::from_row(columns, 0, "train").unwrap());
    Arc::new(Sample::new(task, 0, vec![trajectory]))
}

/// Reads the note of a guest that scored.
pub trait Sampled {
    fn note(self) -> Value;
}

impl Sampled for Evaluation {
    fn note(self) -> Value {
        let Outcome::Scored(score) = self.outcome else { panic!("not scored: {:?}", self.outcome) };
        serde_json::from_str(&score.note.unwrap()).unwrap()
    }
}
