//! Language models that a plugin may ask.

use crate::common::{guest, sample, sandbox};
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{Evaluation, Outcome};
use gavel_plugin::{
    CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, Grants, LoadError, Plugin, PluginSpec, Sandbox, Tape,
};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Barrier;

/// Answers 2 after a delay, and remembers the requests.
#[derive(Default)]
struct Model {
    asked: Mutex<Vec<ChatRequest>>,
    delay: Duration,
    /// Answers when this many requests wait.
    together: Option<Barrier>,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    error: Option<ChatError>,
}

impl ChatModel for Model {
    fn complete(
        self: Arc<Self>,
        request: ChatRequest,
        meter: CallMeter,
    ) -> BoxFuture<'static, Result<ChatBody, ChatError>> {
        self.asked.lock().unwrap().push(request);
        async move {
            let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_under_way.fetch_max(under_way, Ordering::SeqCst);
            match &self.together {
                Some(all) => {
                    all.wait().await;
                }
                None => tokio::time::sleep(self.delay).await,
            }
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            match &self.error {
                Some(error) => Err(error.clone()),
                None => {
                    let message = json!({"role": "assistant", "content": " 2\n"});
                    let body = json!({"choices": [{"finish_reason": "stop", "message": message}]});
                    Ok(ChatBody::of(&body, &meter)?)
                }
            }
        }
        .boxed()
    }
}

fn spec(params: Value) -> PluginSpec {
    let mut spec = PluginSpec::new("asks", guest("asks"));
    spec.params = serde_json::from_value(params).unwrap();
    spec.grants = Grants { chat: vec!["judge".into()], ..Grants::default() };
    spec
}

fn with(model: Model, concurrency: usize) -> (Sandbox, Arc<Model>) {
    let (sandbox, model) = (sandbox(), Arc::new(model));
    sandbox.add_chat("judge", model.clone(), NonZeroUsize::new(concurrency).unwrap());
    (sandbox, model)
}

fn score(sandbox: &Sandbox, spec: PluginSpec) -> Evaluation {
    sandbox.handle().block_on(async { Plugin::load(sandbox, spec).await.unwrap().score(&sample(), 7).await })
}

#[test]
fn questions_are_asked_at_once_and_answered_in_order() {
    let (sandbox, model) = with(Model { together: Some(Barrier::new(8)), ..Model::default() }, 8);
    let evaluation = score(&sandbox, spec(json!({"questions": 8})));
    assert_eq!(evaluation.outcome.score(), Some(16.0), "{evaluation:?}");
    let asked = model.asked.lock().unwrap();
    assert!(asked.iter().map(|request| request.messages[1].text()).eq((0..8).map(|n| format!("{n}: 2"))), "{asked:?}");
    let first = &asked[0];
    assert_eq!(first.messages[0].text(), "Answer with a number.");
    assert_eq!(Value::Object(first.options.clone()), json!({"temperature": 0}));
}

#[test]
fn the_turn_of_others_is_not_charged() {
    let (sandbox, model) = with(Model { delay: Duration::from_millis(100), ..Model::default() }, 1);
    let mut spec = spec(json!({}));
    spec.limits.deadline = Duration::from_secs(60);
    let plugin = Arc::new(sandbox.handle().block_on(Plugin::load(&sandbox, spec)).unwrap());
    let (start, mut charged) = (Instant::now(), Duration::ZERO);
    let calls: Vec<_> = (0..10)
        .map(|seed| {
            let plugin = plugin.clone();
            sandbox.handle().spawn(async move { plugin.score(&sample(), seed).await })
        })
        .collect();
    for call in calls {
        let evaluation = sandbox.handle().block_on(call).unwrap();
        assert_eq!(evaluation.outcome.score(), Some(2.0), "{evaluation:?}");
        charged += Duration::from_micros(evaluation.usage.elapsed_us);
    }
    assert_eq!(model.most_under_way.load(Ordering::SeqCst), 1);
    // One is answered after another, so all answers together take as long as the whole call. With the waits for a turn,
    // the time would be more than five times that.
    let whole = start.elapsed();
    assert!(charged < 2 * whole, "{charged:?} charged in {whole:?}");
}

#[test]
fn a_model_that_does_not_answer_ends_with_the_deadline() {
    let (sandbox, model) = with(Model { delay: Duration::from_secs(60), ..Model::default() }, 1);
    let mut spec = spec(json!({"questions": 2}));
    spec.limits.deadline = Duration::from_millis(100);
    let evaluation = score(&sandbox, spec);
    assert!(matches!(evaluation.outcome, Outcome::OutOfBudget { .. }), "{evaluation:?}");
    // On a busy machine, the call may end before the first request is sent.
    assert!(model.asked.lock().unwrap().len() <= 1);
}

#[test]
fn errors_reach_the_plugin() {
    let error = ChatError::Unavailable("the endpoint `judge` is too busy".into());
    let (sandbox, _) = with(Model { error: Some(error), ..Model::default() }, 1);
    let evaluation = score(&sandbox, spec(json!({})));
    assert_eq!(evaluation.outcome, Outcome::Unavailable("the endpoint `judge` is too busy".into()));
    let evaluation = score(&sandbox, spec(json!({"endpoint": "other", "forgive": true})));
    let note = evaluation.outcome.reason().unwrap();
    assert_eq!(note, "the endpoint `other` is not granted to this plugin, which has: judge");
}

#[test]
fn init_asks_nobody() {
    let (sandbox, model) = with(Model::default(), 1);
    let loaded = sandbox.handle().block_on(Plugin::load(&sandbox, spec(json!({"in_init": true}))));
    let error = loaded.err().unwrap().to_string();
    assert!(error.contains("`init` cannot ask an endpoint; ask in the call itself"), "{error}");
    assert!(model.asked.lock().unwrap().is_empty());
}

#[test]
fn a_plugin_that_asks_still_starts_from_a_snapshot() {
    let (sandbox, _) = with(Model::default(), 1);
    let plugin = sandbox.handle().block_on(Plugin::load(&sandbox, spec(json!({})))).unwrap();
    assert_eq!(plugin.no_snapshot(), None);
}

#[test]
fn what_is_not_granted_or_not_there_is_named() {
    let (sandbox, _) = with(Model::default(), 1);
    let load = |grants: Grants| {
        let spec = PluginSpec { grants, ..spec(json!({})) };
        sandbox.handle().block_on(Plugin::load(&sandbox, spec)).err().unwrap()
    };
    let error = load(Grants::default());
    assert!(matches!(&error, LoadError::NotGranted { .. }));
    assert!(error.to_string().contains(r#"grant = { chat = ["NAME"] }"#), "{error}");
    let error = load(Grants { chat: vec!["critic".into()], ..Grants::default() }).to_string();
    assert!(error.contains("there is no endpoint `critic` (known: judge)"), "{error}");
}

#[test]
fn a_judged_call_replays_without_the_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape");
    let (sandbox, model) = with(Model::default(), 4);
    sandbox.use_tape(Tape::record(tape.clone()));
    let first = score(&sandbox, spec(json!({"questions": 3})));
    assert_eq!((first.outcome.score(), model.asked.lock().unwrap().len()), (Some(6.0), 3));
    let (sandbox, model) =
        with(Model { error: Some(ChatError::Refused("nobody is here".into())), ..Model::default() }, 4);
    sandbox.use_tape(Tape::replay(&tape).unwrap());
    let again = score(&sandbox, spec(json!({"questions": 3})));
    assert_eq!((again.outcome, model.asked.lock().unwrap().len()), (first.outcome, 0));
    let more = score(&sandbox, spec(json!({"questions": 4})));
    let what = "the chat request to the endpoint `judge` was not recorded";
    assert_eq!(more.outcome, Outcome::Unavailable(what.into()));
}
