//! The records of requests that plugins make, against a real HTTP server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use common::{asking, endpoint, run, sample, serve};
use futures::future::{BoxFuture, ready};
use gavel_data::{ConversationScore, Message, OutsideCall};
use gavel_plugin::{CallLog, ChatError, Grants, RewardModel, SandboxConfig, Tape};
use gavel_scoring::{PendingGroup, Scorer, ScorerConfig, WeightedPlugin};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

/// Answers that a server gives in order.
type Answers = Arc<Mutex<VecDeque<(StatusCode, &'static str)>>>;

async fn answer(State(answers): State<Answers>) -> (StatusCode, &'static str) {
    answers.lock().unwrap().pop_front().unwrap()
}

/// The record without its times, which must be there.
fn without_times(call: &OutsideCall) -> Value {
    let mut call = serde_json::to_value(call).unwrap();
    let call_of = call.as_object_mut().unwrap();
    assert!(call_of.remove("timestamp").unwrap().as_f64().unwrap() > 1_700_000_000.0);
    for time in ["waited", "ran"] {
        assert!(call_of.remove(time).unwrap().as_f64().unwrap() >= 0.0);
    }
    call
}

#[test]
fn each_request_to_an_endpoint_is_noted_with_its_end_and_without_secrets() {
    let (runtime, answers) = (Runtime::new().unwrap(), Answers::default());
    let address = serve(&runtime, post(answer).with_state(answers.clone()));
    let body = r#"{"choices":[{"message":{"content":"1"}}],"echo":["sk-s3cret-k3y","w0rd-of-the-plugin"]}"#;
    answers.lock().unwrap().extend([(StatusCode::OK, body), (StatusCode::BAD_REQUEST, "not sk-s3cret-k3y")]);
    // SAFETY: no other thread of this test reads the environment meanwhile.
    unsafe {
        std::env::set_var("GAVEL_TEST_CALLS_KEY", "sk-s3cret-k3y");
        std::env::set_var("GAVEL_TEST_CALLS_WORD", "w0rd-of-the-plugin");
    }
    let mut plugin = asking("asks", "guests/asks.wasm", json!({"forgive": true}));
    plugin.spec.grants.env = vec!["GAVEL_TEST_CALLS_WORD".into()];
    let endpoint = endpoint(address, json!({"api_key_env": "GAVEL_TEST_CALLS_KEY", "retries": 0}));
    let scorer = run(vec![plugin], endpoint).unwrap();
    let (folder, log) = (tempfile::tempdir().unwrap(), CallLog::new(true));
    scorer.use_tape(Tape::record_as(folder.path().into(), 0, Some(log.clone())));
    let group = PendingGroup::named(2, "3.0");
    let mut recorded = Vec::new();
    for (index, response) in [(0, "what is w0rd-of-the-plugin?"), (1, "and now?")] {
        let sample = sample(json!({"prompt": "q"}), index, response);
        let outcome = scorer.wait(scorer.start(&group, sample, 7));
        recorded.push(outcome.plugins["asks"].provenance.clone().unwrap().input);
    }
    let calls = log.take().calls;
    let question = |text: &str| {
        let messages = json!([
            {"role": "system", "content": "Answer with a number."},
            {"role": "user", "content": format!("0: {text}")},
        ]);
        json!({"endpoint": "judge", "messages": messages, "options": {"temperature": 0}})
    };
    let found: Vec<Value> = calls
        .iter()
        .map(|call| {
            let mut found = without_times(call);
            let question: Value = serde_json::from_str(found["question"].as_str().unwrap()).unwrap();
            found["question"] = question;
            found
        })
        .collect();
    // The sizes are those of the texts as they were.
    let size = |text: &str| question(text).to_string().len();
    let answered =
        r#"{"choices":[{"message":{"content":"1"}}],"echo":["$GAVEL_TEST_CALLS_KEY","$GAVEL_TEST_CALLS_WORD"]}"#;
    let received = answered.replace("$GAVEL_TEST_CALLS_WORD", "w0rd-of-the-plugin").len();
    let expected = [
        json!({
            "for": "3.0.0", "plugin": "asks", "input": recorded[0], "seed": 7, "kind": "chat", "endpoint": "judge",
            "question_bytes": size("what is w0rd-of-the-plugin?"), "answer_bytes": received, "ended": "answered",
            "question": question("what is $GAVEL_TEST_CALLS_WORD?"), "answer": answered,
        }),
        json!({
            "for": "3.0.1", "plugin": "asks", "input": recorded[1], "seed": 7, "kind": "chat", "endpoint": "judge",
            "question_bytes": size("and now?"), "answer_bytes": 0, "ended": "refused",
            "error": "the endpoint `judge`: it answered 400 Bad Request: not $GAVEL_TEST_CALLS_KEY",
            "question": question("and now?"),
        }),
    ];
    assert_eq!(found, expected);
}

#[test]
fn without_texts_there_are_sizes() {
    let (runtime, answers) = (Runtime::new().unwrap(), Answers::default());
    let address = serve(&runtime, post(answer).with_state(answers.clone()));
    let body = r#"{"choices":[{"message":{"content":"1"}}]}"#;
    answers.lock().unwrap().extend([(StatusCode::OK, body), (StatusCode::OK, body)]);
    let scorer = run(vec![asking("asks", "guests/asks.wasm", json!({"questions": 2}))], endpoint(address, json!({})));
    let (scorer, folder, log) = (scorer.unwrap(), tempfile::tempdir().unwrap(), CallLog::new(false));
    scorer.use_tape(Tape::record_as(folder.path().into(), 0, Some(log.clone())));
    // Outside of a run, a sample has no id.
    let outcome = scorer.wait(scorer.start_alone(sample(json!({"prompt": "q"}), 0, "42"), 1));
    assert_eq!(outcome.reward, Some(2.0));
    let calls = log.take().calls;
    assert_eq!(calls.len(), 2);
    for call in calls {
        assert_eq!((call.made_for.as_deref(), call.answer_bytes), (None, body.len() as u64));
        assert!(call.question_bytes > 100 && call.question.is_none() && call.answer.is_none(), "{call:?}");
    }
    assert_eq!(log.take().calls, []);
}

/// Scores with 0.5, or refuses.
struct Half;

impl RewardModel for Half {
    fn score(self: Arc<Self>, conversation: Vec<Message>) -> BoxFuture<'static, Result<ConversationScore, ChatError>> {
        Box::pin(ready(match conversation.last().unwrap().text().as_str() {
            "too long" => Err(ChatError::Refused("it is too long".into())),
            _ => Ok(ConversationScore::whole(0.5)),
        }))
    }
}

#[test]
fn requests_to_a_reward_model_are_noted() {
    let mut plugin: WeightedPlugin = asking("quality", "plugins/reward-model.wasm", json!({"model": "half"}));
    plugin.spec.grants = Grants { reward_model: vec!["half".into()], ..Grants::default() };
    let config = ScorerConfig {
        reward_models: BTreeMap::from([("half".to_owned(), Arc::new(Half) as Arc<dyn RewardModel>)]),
        ..SandboxConfig::with_threads(NonZeroUsize::MIN).into()
    };
    let (folder, log) = (tempfile::tempdir().unwrap(), CallLog::new(true));
    let tape = Tape::record_as(folder.path().into(), 0, Some(log.clone()));
    let scorer = Scorer::with_tape(vec![plugin], config, Some(tape)).unwrap();
    for response in ["Hello", "too long"] {
        scorer.wait(scorer.start_alone(sample(json!({"prompt": "Greet me."}), 0, response), 1));
    }
    let calls = log.take().calls;
    let found: Vec<Value> = calls
        .iter()
        .map(|call| {
            let call = without_times(call);
            let text = |field: &str| call[field].as_str().map(|text| serde_json::from_str::<Value>(text).unwrap());
            let content = text("question").unwrap()["messages"][1]["content"].clone();
            json!([call["kind"], call["endpoint"], content, call["ended"], text("answer"), call["error"]])
        })
        .collect();
    let score = json!({"choices": [{"message": {"role": "assistant", "content": "0.5"}}]});
    let expected = [
        json!(["reward-model", "half", "Hello", "answered", score, null]),
        json!(["reward-model", "half", "too long", "refused", null, "it is too long"]),
    ];
    assert_eq!(found, expected);
}
