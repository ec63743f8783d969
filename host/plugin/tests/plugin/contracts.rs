//! Components of the older contract 0.1, which were built before the contract changed.

use crate::common::{Sampled, guest, sandbox};
use crate::full::{full_sample, verdicts};
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{ConversationScore, JudgeId, Message, Outcome, SampleInput};
use gavel_plugin::{
    CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, Grants, Limits, Plugin, PluginSpec, ProgramSpec,
    RewardModel, inspect,
};
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn kept(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/contracts/0.1").join(file)
}

/// BLAKE3 of the frozen contract. It never changes.
const FROZEN: &str = "ec3061bafd2af1f4344db7f71c950c395814fdbccb3e9989ed66ea010f668450";

#[test]
fn the_frozen_contract_stays_as_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/0.1");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = blake3::Hasher::new();
    for file in files {
        all.update(&std::fs::read(file).unwrap());
    }
    assert_eq!(all.finalize().to_hex().as_str(), FROZEN);
}

/// Answers every request with this text.
struct Says(&'static str);

impl ChatModel for Says {
    fn complete(self: Arc<Self>, _: ChatRequest, meter: CallMeter) -> BoxFuture<'static, Result<ChatBody, ChatError>> {
        let message = json!({"role": "assistant", "content": self.0});
        let body = json!({"choices": [{"finish_reason": "stop", "message": message}]});
        async move { Ok(ChatBody::of(&body, &meter)?) }.boxed()
    }
}

impl RewardModel for Says {
    fn score(self: Arc<Self>, _: Vec<Message>) -> BoxFuture<'static, Result<ConversationScore, ChatError>> {
        async { Ok(ConversationScore::whole(0.75)) }.boxed()
    }
}

#[test]
fn a_component_of_0_1_sees_what_it_saw_and_is_recorded_as_such() {
    let sandbox = sandbox();
    sandbox.add_chat("echo", Arc::new(Says("hello")), NonZeroUsize::MIN);
    sandbox.add_reward_model("rm", Arc::new(Says("")));
    sandbox.add_program(ProgramSpec { name: "child".into(), path: guest("child"), limits: Limits::default() }).unwrap();
    let grants = Grants {
        chat: vec!["echo".into()],
        reward_model: vec!["rm".into()],
        exec: vec!["child".into()],
        ..Grants::default()
    };
    let verdicts = verdicts().map(|(name, verdict)| (name.to_owned(), verdict)).into();
    let input = SampleInput { sample: full_sample().into(), verdicts: Arc::new(verdicts) };
    let (plugin, evaluation) = sandbox.handle().block_on(async {
        let spec = PluginSpec { grants, ..PluginSpec::new("sees", kept("sees.wasm")) };
        let plugin = Plugin::load(&sandbox, spec).await.unwrap();
        let evaluation = plugin.score(&input, 7).await;
        (plugin, evaluation)
    });
    let provenance = evaluation.provenance.clone().unwrap();
    assert_eq!((plugin.contract(), provenance.contract.as_str()), ("gavel:plugin@0.1.0", "gavel:plugin@0.1.0"));
    let hash = blake3::hash(&std::fs::read(kept("sees.wasm")).unwrap()).to_hex().to_string();
    assert_eq!(provenance.judge, JudgeId::Component(hash));
    let Outcome::Scored(score) = &evaluation.outcome else { panic!("{evaluation:?}") };
    assert_eq!((score.value, score.metrics[0].value, score.credit[0].value, &score.payload), (0.25, -1.5, 0.5, &None));
    assert_eq!(
        evaluation.note(),
        json!({
            "task": ["t", "s", 3],
            "prompt": [["Role::User", ["look", ["image/png", 4, [2, 3]]], [], null, null]],
            "trajectories": [
                {
                    "messages": [
                        ["Role::Assistant", ["?é"], [["c", "f", "{}"]], null, null],
                        ["Role::Tool", ["no"], [], "c", "f"],
                        ["Role::Assistant", ["4"], [], null, null],
                    ],
                    "response": "4",
                    "finish_reason": "FinishReason::Length",
                    "turns": [2, 1],
                    "tokens": [3, 3],
                    "policy_version": 9,
                },
                {
                    "messages": [["Role::Assistant", ["yes"], [], null, null]],
                    "response": "yes",
                    "finish_reason": "FinishReason::Stop",
                    "turns": [1, 0],
                    "tokens": [null, null],
                    "policy_version": null,
                },
            ],
            "response": "four",
            "verdicts": [
                {"value": 0.5, "metrics": [["m", 2.0]], "credit": [[2, 0, 1, -1.0]], "note": "n"},
                {"abstained": "not mine"},
                "PriorVerdict::NotCalled",
                "PriorVerdict::NoVerdict",
                null,
            ],
            "ground_truth": "4",
            "column": "[1,null]",
            "columns": [
                ["id", "data_source", "prompt", "answer", "level"],
                serde_json::to_string(&input.sample.task.reference.columns).unwrap(),
            ],
            "chat": {"text": "hello", "finish_reason": "stop"},
            "reward_model": "Ok(0.75)",
            "exec": "Ok(Ending::Exited(1))",
        })
    );
}

#[test]
fn inspect_names_the_version_of_a_component() {
    let sandbox = sandbox();
    let version = |path| {
        let spec = PluginSpec::new("x", path);
        sandbox.handle().block_on(inspect(&sandbox, spec)).unwrap().contract
    };
    for file in ["c-judger.wasm", "rust-agent.wasm", "sees.wasm"] {
        assert_eq!(version(kept(file)).as_deref(), Some("0.1.0"), "{file}");
    }
}
