//! What rewards of the present contract see beside messages, and what they give beside numbers.

use crate::common::{guest, sandbox};
use crate::full::{full_sample, verdicts};
use gavel_data::{Outcome, OutcomeKind, Sample, SampleInput};
use gavel_plugin::{Plugin, PluginSpec, inspect};
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn inspect_names_the_version_of_a_component() {
    let sandbox = sandbox();
    let spec = PluginSpec::new("traces", guest("traces"));
    let found = sandbox.handle().block_on(inspect(&sandbox, spec)).unwrap();
    assert_eq!(found.contract.as_deref(), Some("0.2.0"));
}

/// What the guest `traces` notes of a sample, and its score.
fn traced(params: Value, input: &SampleInput) -> Outcome {
    let sandbox = sandbox();
    let params = serde_json::from_value(params).unwrap();
    let spec = PluginSpec { params, ..PluginSpec::new("traces", guest("traces")) };
    sandbox.handle().block_on(async { Plugin::load(&sandbox, spec).await.unwrap().score(input, 7).await }).outcome
}

#[test]
fn a_reward_sees_the_whole_trace() {
    let [(_, scored), ..] = verdicts();
    let verdicts = Arc::new([("before".to_owned(), scored)].into());
    let input = SampleInput { sample: full_sample().into(), verdicts };
    let Outcome::Scored(score) = traced(json!({"payload": {"steps": [4.5, {"é": null}]}}), &input) else {
        panic!("not scored")
    };
    assert_eq!(serde_json::to_string(&score.payload.unwrap()).unwrap(), r#"{"steps":[4.5,{"é":null}]}"#);
    assert_eq!(
        serde_json::from_str::<Value>(&score.note.unwrap()).unwrap(),
        json!({
            "trajectories": [
                {
                    "speaker": "",
                    "opening": ["look"],
                    "functions": [["f", "Does it.", r#"{"type":"object"}"#]],
                    "turns": [["FinishReason::Stop", 1], [null, null], ["FinishReason::Length", 2]],
                    "calls": [[0, "f", "CallEnding::Failed"], [0, null, "CallEnding::CalledWrongly"]],
                    "shop": {"sold": [2]},
                    "unknown": null,
                },
                {
                    "speaker": "critic",
                    "opening": ["Is it 4?"],
                    "functions": [],
                    "turns": [[null, null]],
                    "calls": [],
                    "shop": {"sold": [2]},
                    "unknown": null,
                },
            ],
            "extra": {"plan": 1.5},
            "before": r#"{"parts":[1.50]}"#,
        })
    );
}

#[test]
fn a_judger_sees_states_objects_and_speakers() {
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let plugin = Plugin::load(&sandbox, PluginSpec::new("witness", guest("witness"))).await.unwrap();
        let without = Sample { extra: None, states: Default::default(), ..full_sample() };
        let notes = plugin.judge(&[full_sample(), without].map(Arc::new), 7).await.into_iter().map(|evaluation| {
            let Outcome::Scored(score) = evaluation.outcome else { panic!("not scored") };
            serde_json::from_str::<Value>(&score.note.unwrap()).unwrap()
        });
        let wanted = [
            json!([[["", {"sold": [2]}], ["critic", {"sold": [2]}]], {"plan": 1.5}]),
            json!([[["", null], ["critic", null]], null]),
        ];
        assert_eq!(notes.collect::<Vec<_>>(), wanted);
    });
}

#[test]
fn a_payload_that_is_no_object_or_too_large_is_a_fault() {
    let input = SampleInput::from(full_sample());
    for (payload, says) in [
        (json!([1]), "the payload is not a JSON object: invalid type: sequence, expected a map"),
        (json!({"a": "x".repeat(1 << 16)}), "the payload has 65544 bytes, more than the 65536 allowed"),
    ] {
        let outcome = traced(json!({"payload": payload}), &input);
        assert!(outcome.reason().is_some_and(|reason| reason.starts_with(says)), "{outcome:?}");
        assert_eq!(outcome.kind(), OutcomeKind::Fault);
    }
}
