//! Reward models that a plugin asks.

use futures::future::{BoxFuture, ready};
use gavel_data::{
    ConversationScore, Credit, Message, Outcome, OutcomeKind, Role, Sample, SampleOutcome, StepValue, Task, Trajectory,
};
use gavel_plugin::{ChatError, Grants, PluginSpec, RewardModel, SandboxConfig, Tape};
use gavel_scoring::{Scorer, ScorerConfig, WeightedPlugin};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};

const STEPS: [StepValue; 2] =
    [StepValue { start: 0, end: 4, value: 0.1 + 0.2 }, StepValue { start: 5, end: 9, value: 0.25 }];

/// Scores by the length of the last message, and remembers the conversations.
#[derive(Default)]
struct Lengths(Mutex<Vec<Vec<Message>>>);

impl RewardModel for Lengths {
    fn score(self: Arc<Self>, conversation: Vec<Message>) -> BoxFuture<'static, Result<ConversationScore, ChatError>> {
        let last = conversation.last().unwrap().text();
        self.0.lock().unwrap().push(conversation);
        Box::pin(ready(match last.as_str() {
            "too long" => Err(ChatError::Refused("it has 9 tokens, and the model reads 8".into())),
            "away" => Err(ChatError::Unavailable("the device is gone".into())),
            "nan" => Ok(ConversationScore::whole(f64::NAN)),
            "One. Two." => Ok(ConversationScore { score: 0.25, steps: STEPS.to_vec() }),
            text => Ok(ConversationScore::whole(text.len() as f64 / 3.0)),
        }))
    }
}

fn plugin(params: Value) -> WeightedPlugin {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins/reward-model.wasm");
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    let mut spec = PluginSpec::new("quality", path);
    spec.params = serde_json::from_value(params).unwrap();
    spec.grants = Grants { reward_model: vec!["quality".into()], ..Grants::default() };
    WeightedPlugin::new(spec, 1.0)
}

fn scorer(params: Value, model: Option<Arc<Lengths>>, tape: Tape) -> Result<Scorer, String> {
    let models = model.map(|model| ("quality".to_owned(), model as Arc<dyn RewardModel>));
    let config = ScorerConfig {
        reward_models: BTreeMap::from_iter(models),
        ..SandboxConfig::with_threads(NonZeroUsize::MIN).into()
    };
    Scorer::with_tape(vec![plugin(params)], config, Some(tape)).map_err(|error| error.to_string())
}

fn score(scorer: &Scorer, response: &str) -> SampleOutcome {
    let columns = json!({"prompt": [{"role": "user", "content": "Greet me."}]});
    let task = Arc::new(Task::from_row(serde_json::from_value(columns).unwrap(), 0, "data").unwrap());
    let sample = Sample::new(task, 0, vec![Trajectory::of(vec![Message::new(Role::Assistant, response)])]);
    scorer.wait(scorer.start_alone(sample, 1))
}

#[test]
fn a_score_is_scaled_clipped_and_replayed_to_the_last_bit() {
    let (model, folder) = (Arc::new(Lengths::default()), tempfile::tempdir().unwrap());
    let params = || json!({"model": "quality", "scale": 0.7, "clip": [-5.0, 5.0]});
    let tape = |path: &Path| Tape::record(path.to_owned());
    let recorded = scorer(params(), Some(model.clone()), tape(folder.path())).unwrap();
    let scores = ["Hello", "Good morning, and many of them"].map(|response| score(&recorded, response).reward.unwrap());
    assert_eq!(scores, [5.0 / 3.0 * 0.7, 5.0]);
    let asked = model.0.lock().unwrap().clone();
    let texts: Vec<String> = asked[0].iter().map(Message::text).collect();
    assert_eq!(texts, ["Greet me.", "Hello"]);
    drop(recorded);
    let replayed = scorer(params(), None, Tape::replay(folder.path()).unwrap()).unwrap();
    let again = ["Hello", "Good morning, and many of them"].map(|response| score(&replayed, response).reward.unwrap());
    assert_eq!(again.map(f64::to_bits), scores.map(f64::to_bits));
    // A new conversation has no answer on the tape.
    assert_eq!(score(&replayed, "Bye").outcome, OutcomeKind::Unavailable);
}

#[test]
fn a_model_that_gives_no_score_gives_no_zero() {
    let scorer = scorer(json!({"model": "quality"}), Some(Arc::new(Lengths::default())), Tape::Off).unwrap();
    for (response, kind, says) in [
        ("too long", OutcomeKind::Fault, "it has 9 tokens, and the model reads 8"),
        ("away", OutcomeKind::Unavailable, "the device is gone"),
        ("nan", OutcomeKind::Unavailable, "the reward model's answer is not a number: \"NaN\""),
    ] {
        let found = score(&scorer, response);
        assert_eq!((found.reward, found.outcome), (None, kind), "{response}");
        let reason = found.plugins["quality"].outcome.reason().unwrap();
        assert!(reason.contains(says), "{reason}");
    }
}

#[test]
fn a_model_that_is_not_there_is_refused_before_the_run() {
    let error = scorer(json!({"model": "quality"}), None, Tape::Off).err().unwrap();
    assert!(error.contains("grant.reward_model: there is no reward model `quality` (known: none)"), "{error}");
    assert!(error.contains("\nhint: add [reward_model.quality] with its path"), "{error}");
}

#[test]
fn the_values_of_steps_are_credit_and_replay() {
    let (model, folder) = (Arc::new(Lengths::default()), tempfile::tempdir().unwrap());
    let params = || json!({"model": "quality", "credit": 2.0});
    let found = |scorer: &Scorer| {
        let found = score(scorer, "One. Two.");
        let Outcome::Scored(score) = found.plugins["quality"].outcome.clone() else { panic!("{found:?}") };
        assert_eq!(score.metrics.iter().map(|metric| metric.value).collect::<Vec<_>>(), [0.25, 2.0]);
        (score.value, score.credit)
    };
    let recorded = scorer(params(), Some(model), Tape::record(folder.path().to_owned())).unwrap();
    let credit = STEPS.map(|StepValue { start, end, value }| Credit {
        trajectory: 0,
        message: 0,
        start,
        end,
        value: 2.0 * value,
    });
    assert_eq!(found(&recorded), (0.25, credit.to_vec()));
    drop(recorded);
    let replayed = scorer(params(), None, Tape::replay(folder.path()).unwrap()).unwrap();
    assert_eq!(found(&replayed), (0.25, credit.to_vec()));
}
