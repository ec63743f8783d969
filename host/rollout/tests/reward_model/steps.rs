//! Process reward models: a value for each step.

use super::{config, ids, model, start};
use gavel_data::{Message, Role};
use gavel_policy::{Device, Kind, Model, Tensor};
use gavel_rollout::{Each, RewardModel, RewardModelConfig, StepsConfig, StepsScore};
use gavel_text::{RenderOptions, TextModel};
use serde_json::json;
use tokio::runtime::Runtime;

/// A model that gives values to tokens, with this many labels.
fn token_classifier(labels: u32) -> Model {
    let model = model(json!({"architectures": ["Qwen2ForTokenClassification"], "num_labels": labels}));
    // A head that starts at 0 would give every token the same value.
    for (name, mut tensor) in model.parameters() {
        if name.starts_with("score.") {
            let numbers = Tensor::arange(tensor.numel() as i64, (Kind::Float, Device::Cpu)).sin().view_as(&tensor);
            tch::no_grad(|| tensor.copy_(&numbers));
        }
    }
    model
}

fn steps(each: Each, score: StepsScore) -> RewardModelConfig {
    RewardModelConfig { steps: Some(StepsConfig { each, score }), ..config(10_000) }
}

fn parts(mark: Option<&str>) -> Each {
    Each::Part { separator: "\n\n".into(), mark: mark.map(str::to_owned) }
}

/// The value of each byte of the rendered conversation, and the byte at which its last message begins.
fn values(model: &Model, conversation: &[Message]) -> (Vec<f64>, usize) {
    let text = TextModel::byte_level().template.render(conversation, &RenderOptions::default()).unwrap();
    let ids = ids(conversation, &RenderOptions::default());
    let values = model.values(&model.hidden(&ids).unwrap()).unwrap().squeeze_dim(0);
    let values = match values.size()[1] {
        1 => values.squeeze_dim(1),
        _ => values.softmax(1, Kind::Double).select(1, 1),
    };
    let values = Vec::<f64>::try_from(&values.to_kind(Kind::Double)).unwrap();
    // Special tokens are one token: counted from the end, `<|im_end|>` and a line end follow the message.
    let response = conversation.last().unwrap().text();
    assert!(text.ends_with(&format!("{response}<|im_end|>\n")));
    let start = values.len() - 2 - response.len();
    (values, start)
}

#[test]
fn a_process_reward_model_values_each_step() {
    let response = "First, é.\n\n\n\nThen 2. \n\n";
    let asked = vec![Message::new(Role::User, "Go."), Message::new(Role::Assistant, response)];
    let bounds = [(0, 10), (14, 22)];
    let runtime = Runtime::new().unwrap();
    for labels in [1, 2] {
        let (all, start) = values(&token_classifier(labels), &asked);
        // The last byte of each step that is not white space.
        let expected = [all[start + 9], all[start + 20]];
        assert!((expected[0] - expected[1]).abs() > 1e-4, "{expected:?}");
        for (how, score) in [
            (StepsScore::Min, expected[0].min(expected[1])),
            (StepsScore::Mean, (expected[0] + expected[1]) / 2.0),
            (StepsScore::Last, expected[1]),
            (StepsScore::Product, expected[0] * expected[1]),
        ] {
            let rewards = start_steps(labels, parts(None), how);
            let found = runtime.block_on(rewards.score(&asked)).unwrap();
            assert!((found.score - score).abs() < 1e-5, "{labels}, {how:?}: {found:?} {score}");
            for ((step, bounds), expected) in found.steps.iter().zip(bounds).zip(expected) {
                assert_eq!((step.start, step.end), bounds);
                assert!((step.value - expected).abs() < 1e-5, "{step:?} {expected}");
            }
            assert_eq!(found.steps.len(), 2);
        }
    }
}

fn start_steps(labels: u32, each: Each, how: StepsScore) -> RewardModel {
    start(token_classifier(labels), steps(each, how)).unwrap()
}

#[test]
fn a_mark_takes_the_place_of_separators() {
    let runtime = Runtime::new().unwrap();
    let asked = |response: &str| vec![Message::new(Role::User, "Go."), Message::new(Role::Assistant, response)];
    let read = asked("One.<+>Two.<+>");
    let (all, start) = values(&token_classifier(2), &read);
    let rewards = start_steps(2, parts(Some("<+>")), StepsScore::Min);
    let found = runtime.block_on(rewards.score(&asked("One.\n\nTwo."))).unwrap();
    let found: Vec<(u32, u32, f64)> = found.steps.iter().map(|step| (step.start, step.end, step.value)).collect();
    for (found, expected) in found.iter().zip([(0, 4, all[start + 6]), (6, 10, all[start + 13])]) {
        assert_eq!((found.0, found.1), (expected.0, expected.1));
        assert!((found.2 - expected.2).abs() < 1e-5, "{found:?} {expected:?}");
    }
    assert_eq!(found.len(), 2);
    // The policy cannot set the ends of its steps itself.
    let rewards = start_steps(2, parts(Some("<|pad|>")), StepsScore::Min);
    let error = runtime.block_on(rewards.score(&asked("One.<|pad|>Two."))).unwrap_err();
    assert!(error.is_of_conversation() && error.to_string().contains("has the mark of their ends"), "{error}");
}

#[test]
fn every_token_may_be_a_step() {
    let runtime = Runtime::new().unwrap();
    let asked = vec![Message::new(Role::User, "Go."), Message::new(Role::Assistant, " Two é ")];
    let (all, start) = values(&token_classifier(1), &asked);
    let rewards = start_steps(1, Each::Token, StepsScore::Last);
    let found = runtime.block_on(rewards.score(&asked)).unwrap();
    // White space at both ends is not a step; both bytes of `é` stand for the whole character.
    let bounds: Vec<(u32, u32)> = found.steps.iter().map(|step| (step.start, step.end)).collect();
    assert_eq!(bounds, [(1, 2), (2, 3), (3, 4), (4, 5), (5, 7), (5, 7)]);
    for (step, expected) in found.steps.iter().zip(&all[start + 1..]) {
        assert!((step.value - expected).abs() < 1e-5, "{step:?} {expected}");
    }
    let empty = vec![Message::new(Role::User, "Go."), Message::new(Role::Assistant, "")];
    assert_eq!(runtime.block_on(rewards.score(&empty)).unwrap().steps.len(), 1);
}
