//! A component, from its file to its first call. The input is its bytes, its
//! text, or the hostile part of one as in `tests/hostile/*/attack.wat`, which
//! is put into an honest component, so that not only its form can be wrong.

use gavel_data::{Blame, Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{Limits, LoadError, Plugin, PluginSpec, Sandbox, SandboxConfig};
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const HONEST: &str = include_str!("../../hostile/reward.wat");
const PLACE: &str = "\nATTACK\n";

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| {
    let config = SandboxConfig {
        memory: 1 << 30,
        // A folder that cannot exist, so that nothing is cached.
        cache: Some("/dev/null/components".into()),
        ..SandboxConfig::with_threads(NonZeroUsize::MIN)
    };
    Sandbox::new(config).unwrap()
});

static SAMPLE: LazyLock<Arc<Sample>> = LazyLock::new(|| {
    let row = serde_json::from_str(r#"{"prompt": "1 + 1?", "answer": "2"}"#).unwrap();
    let messages = vec![Message::new(Role::Assistant, "2")];
    let trajectories = vec![Trajectory::of(messages)];
    Arc::new(Sample::new(Arc::new(Task::from_row(row, 0, "train").unwrap()), 0, trajectories))
});

fn limits() -> Limits {
    Limits {
        deadline: Duration::from_secs(5),
        cpu: Duration::from_millis(50),
        memory: 16 << 20,
        output: 1 << 20,
        ..Limits::default()
    }
}

pub(crate) fn read(input: &[u8]) -> bool {
    let Some(bytes) = assemble(input) else { return false };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let spec = PluginSpec { limits: limits(), ..PluginSpec::new("plugin", file.path()) };
    SANDBOX.handle().block_on(async {
        let plugin = match Plugin::load(&SANDBOX, spec).await {
            Ok(plugin) => plugin,
            Err(LoadError::Engine(what)) => panic!("the engine failed: {what}"),
            Err(error) => {
                drop(error.to_string());
                return false;
            }
        };
        let outcome = plugin.score(&*SAMPLE, 1).await.outcome;
        match &outcome {
            Outcome::Fault { whose: Blame::Host, what } => panic!("the host failed: {what}"),
            Outcome::Scored(score) => assert!(score.value.is_finite(), "{score:?}"),
            _ => {}
        }
        true
    })
}

/// The component's bytes; `None` if the text has an error.
fn assemble(input: &[u8]) -> Option<Vec<u8>> {
    let text = match std::str::from_utf8(input) {
        Ok(text) if text.starts_with(['(', ';']) => text,
        _ => return Some(input.to_vec()),
    };
    let first = text.lines().find(|line| !line.starts_with(";;")).unwrap_or_default();
    let whole = first.starts_with("(component") || first.starts_with("(module");
    let text = if whole { Cow::Borrowed(text) } else { HONEST.replace(PLACE, &format!("\n{text}\n")).into() };
    wat::parse_str(text).ok()
}
