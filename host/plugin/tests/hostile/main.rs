//! The hostile suite: every attack in `tests/hostile` gets exactly the outcome in
//! its `expect.toml`, alone and in a crowd, and honest calls are not affected.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arbitrary;
mod attack;
mod ground;
mod outside;

use attack::Attack;
use gavel_data::{Outcome, OutcomeKind};
use gavel_plugin::{Limits, LoadError, Plugin, PluginSpec, Sandbox, SandboxConfig};
use ground::Ground;
use serde_json::Value;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time that an attack may hold the host, including two copies of 64 MiB.
const PATIENCE: Duration = Duration::from_secs(600);

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap())).unwrap();
    outside::connect(&sandbox, built("guests/child"));
    sandbox
}

/// A component that `cargo xtask plugins` built, such as `guests/abstain`.
fn built(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path
}

async fn load(sandbox: &Sandbox, path: &Path) -> Result<Plugin, LoadError> {
    let spec = PluginSpec {
        name: "plugin".into(),
        path: path.into(),
        params: Default::default(),
        limits: Limits { deadline: Duration::from_secs(60), ..Limits::default() },
        grants: Default::default(),
        reuse: None,
    };
    Plugin::load(sandbox, spec).await
}

fn assert_none(mistakes: Vec<String>) {
    assert!(mistakes.is_empty(), "{} attacks got something else:\n{}", mistakes.len(), mistakes.join("\n"));
}

#[tokio::test]
async fn every_attack_alone_gets_its_outcome_and_gets_it_again() {
    let (ground, sandbox) = (Ground::new(), sandbox());
    let mut mistakes = Vec::new();
    for attack in Attack::all(&ground) {
        let loaded = Plugin::load(&sandbox, attack.spec()).await;
        mistakes.extend(attack.check_load(loaded.as_ref().err()).err());
        let Ok(plugin) = loaded else { continue };
        let start = Instant::now();
        let (first, second) = (attack.call(&plugin, 1).await, attack.call(&plugin, 1).await);
        mistakes.extend(attack.check(&first).err());
        mistakes.extend(attack.check(&second).err());
        // How far over a budget a call was may differ.
        if first.outcome.kind() != OutcomeKind::OutOfBudget && first.outcome != second.outcome {
            mistakes.push(format!("{}: {:?} the second time", attack.name, second.outcome));
        }
        if start.elapsed() > PATIENCE {
            mistakes.push(format!("{}: took {:?}", attack.name, start.elapsed()));
        }
    }
    assert_none(mistakes);
    ground.assert_untouched();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_crowd_each_attack_gets_its_outcome_and_each_honest_call_its_verdict() {
    const HONEST: usize = 1000;
    let (ground, sandbox) = (Ground::new(), sandbox());
    let mut attacks = Vec::new();
    for attack in Attack::all(&ground).into_iter().filter(Attack::loads) {
        let plugin = Plugin::load(&sandbox, attack.spec()).await.unwrap();
        attacks.push(Arc::new((attack, plugin)));
    }
    let honest = Arc::new(load(&sandbox, &built("guests/echo-metadata")).await.unwrap());

    let (mut hostile_calls, mut honest_calls) = (Vec::new(), Vec::new());
    let hostile = attacks.len().max(64);
    for call in 0..HONEST {
        // Spread evenly, so that honest calls start before, between and after the attacks.
        for number in call * hostile / HONEST..(call + 1) * hostile / HONEST {
            let attack = attacks[number % attacks.len()].clone();
            hostile_calls.push(tokio::spawn(async move {
                let (attack, plugin) = &*attack;
                attack.check(&attack.call(plugin, 1).await).err()
            }));
        }
        let (honest, sample) = (honest.clone(), ground.sample(&format!("Answer: {call}")));
        honest_calls.push(tokio::spawn(async move { honest.score(&sample, 1).await.outcome }));
    }

    for (call, outcome) in honest_calls.into_iter().enumerate() {
        let Outcome::Scored(score) = outcome.await.unwrap() else { panic!("the honest call {call} has no score") };
        let seen: Value = serde_json::from_str(&score.note.unwrap()).unwrap();
        assert_eq!((score.value, &seen["response"]), (3.0, &format!("Answer: {call}").into()));
    }
    let mut mistakes = Vec::new();
    for call in hostile_calls {
        mistakes.extend(call.await.unwrap());
    }
    assert_none(mistakes);
    ground.assert_untouched();
}

#[tokio::test]
async fn what_chance_gives_follows_from_the_seed() {
    let (ground, sandbox) = (Ground::new(), sandbox());
    let attack = Attack::all(&ground).into_iter().find(|attack| attack.name == "read-randomness").unwrap();
    let plugin = Plugin::load(&sandbox, attack.spec()).await.unwrap();
    let first = plugin.score(&attack.sample, 1).await.outcome;
    assert_eq!(plugin.score(&attack.sample, 1).await.outcome, first);
    assert_ne!(plugin.score(&attack.sample, 2).await.outcome, first);
}

#[tokio::test]
async fn a_truncated_component_is_refused_wherever_it_ends() {
    let (folder, sandbox) = (tempfile::tempdir().unwrap(), sandbox());
    let whole = std::fs::read(built("guests/abstain")).unwrap();
    let path = folder.path().join("truncated.wasm");
    for part in 0..32 {
        let length = whole.len() * part / 32;
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = load(&sandbox, &path).await.err().unwrap_or_else(|| panic!("{length} bytes of it load"));
        assert!(matches!(error, LoadError::Invalid { .. }), "{length} bytes of it: {error}");
    }
}

#[tokio::test]
async fn a_file_swapped_while_running_changes_nothing_and_the_hash_says_which_runs() {
    let (ground, folder, sandbox) = (Ground::new(), tempfile::tempdir().unwrap(), sandbox());
    let path = folder.path().join("plugin.wasm");
    std::fs::copy(built("guests/abstain"), &path).unwrap();
    let plugin = load(&sandbox, &path).await.unwrap();
    let before = plugin.hash().to_owned();

    let other = folder.path().join("other.wasm");
    std::fs::copy(built("guests/stateful"), &other).unwrap();
    std::fs::rename(&other, &path).unwrap();
    let outcome = plugin.score(&ground.sample("x"), 1).await.outcome;
    assert_eq!(outcome.kind(), OutcomeKind::Abstained, "{outcome:?}");
    assert_eq!(plugin.hash(), before);

    std::fs::write(&path, "no longer WebAssembly").unwrap();
    let outcome = plugin.score(&ground.sample("x"), 1).await.outcome;
    assert_eq!(outcome.kind(), OutcomeKind::Abstained, "{outcome:?}");

    std::fs::copy(built("guests/stateful"), &path).unwrap();
    assert_ne!(load(&sandbox, &path).await.unwrap().hash(), before);
}
