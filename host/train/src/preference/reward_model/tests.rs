use super::*;
use crate::testing::{BARE, last_gradients, tiny_classifier, tokens};
use crate::{OptimizerConfig, Trainer};
use gavel_policy::{Device, Kind, ModelConfig};

const CENTRED: BradleyTerryConfig = BradleyTerryConfig { center_rewards_coefficient: 0.1 };

/// Pairs with a common beginning. Some conversations are nothing but the beginning of the other one.
fn pairs() -> Vec<ConversationPair> {
    [(3, 5, 2, 0.0), (1, 4, 4, 0.5), (6, 0, 3, 0.0), (0, 2, 9, 1.5), (4, 1, 0, 0.0)]
        .into_iter()
        .zip(0..)
        .map(|((common, chosen, rejected, margin), pair)| {
            let prompt = tokens(pair, common);
            let after = |seed: u64, length: usize, first: u32| {
                let rest = tokens(seed + pair, length);
                [prompt.clone(), rest.iter().take(1).map(|_| first).chain(rest.iter().copied().skip(1)).collect()]
                    .concat()
            };
            ConversationPair { chosen: after(100, chosen, 3), rejected: after(200, rejected, 4), margin }
        })
        .collect()
}

/// The score of a conversation by itself.
fn alone(model: &Model, conversation: &[u32]) -> f64 {
    let ids: Vec<i64> = conversation.iter().map(|&id| i64::from(id)).collect();
    model.scores(&Tensor::from_slice(&ids).unsqueeze(0), &[ids.len()]).unwrap().double_value(&[0, 0])
}

fn number(stats: &PairStats, name: &str) -> f64 {
    stats.statistics.get(name).unwrap()
}

#[test]
fn the_numbers_are_those_of_conversations_scored_alone() {
    let model = tiny_classifier(1);
    let scored: Vec<(f64, f64, f64)> =
        pairs().iter().map(|pair| (alone(&model, &pair.chosen), alone(&model, &pair.rejected), pair.margin)).collect();
    let mean = |value: fn(&(f64, f64, f64)) -> f64| scored.iter().map(value).sum::<f64>() / 5.0;
    let expected = [
        ("loss", mean(|(c, r, m)| (1.0 + (-(c - r - m)).exp()).ln() + 0.1 * (c + r).powi(2))),
        ("accuracy", mean(|(c, r, _)| f64::from(u8::from(c > r)))),
        ("margin", mean(|(c, r, _)| c - r)),
        ("rewards/chosen", mean(|(c, ..)| *c)),
        ("rewards/rejected", mean(|(_, r, _)| *r)),
    ];
    let mut trainer = Trainer::new(&model, BARE, 1000).unwrap();
    let held_out = trainer.reward_model_stats(&model, &pairs(), &CENTRED).unwrap();
    let step = trainer.reward_model_step(&model, &pairs(), &CENTRED, 0.0).unwrap();
    for (name, expected) in expected {
        for found in [&held_out, &step] {
            assert!((number(found, name) - expected).abs() < 1e-12, "{name}: {} {expected}", number(found, name));
        }
    }
    assert!((0.2..0.9).contains(&number(&step, "accuracy")), "the pairs are not told apart: {step:?}");
    // The beginning of a pair is read once, and its last pair is 4 and 1 tokens.
    assert_eq!((step.tokens, held_out.tokens), (3 + 7 + 1 + 8 + 6 + 3 + 2 + 9 + 4 + 1, step.tokens));
}

#[test]
fn a_score_is_read_before_tokens_that_are_the_padding() {
    let pad = 12;
    let sizes = ModelConfig { pad_token_id: Some(pad), ..tiny_classifier(1).config().clone() };
    let model = Model::random(sizes, 1, Device::Cpu).unwrap().to_kind(Kind::Double).unwrap();
    let padded = |conversation: &[u32], count: usize| [conversation, &vec![pad; count]].concat();
    let ends_with_pad: Vec<_> = pairs()
        .into_iter()
        .zip(0..)
        .map(|(pair, count)| ConversationPair {
            chosen: padded(&pair.chosen, count),
            rejected: padded(&pair.rejected, 4 - count),
            ..pair
        })
        .collect();
    let trainer = Trainer::new(&model, BARE, 1000).unwrap();
    let stats = |pairs: &[ConversationPair]| trainer.reward_model_stats(&model, pairs, &CENTRED).unwrap();
    assert_eq!(stats(&ends_with_pad), stats(&pairs()));
    // Inside a conversation it is a token like others.
    let inside = ConversationPair { chosen: vec![3, pad, 4], ..pairs()[0].clone() };
    let without = ConversationPair { chosen: vec![3, 4], ..inside.clone() };
    assert_ne!(number(&stats(&[inside]), "rewards/chosen"), number(&stats(&[without]), "rewards/chosen"));
}

#[test]
fn the_split_into_micro_batches_changes_nothing() {
    let model = tiny_classifier(1);
    let gradients = |max_tokens: usize| {
        let mut trainer = Trainer::new(&model, BARE, max_tokens).unwrap();
        let stats = trainer.reward_model_step(&model, &pairs(), &CENTRED, 0.0).unwrap();
        (stats, last_gradients(&model, &trainer))
    };
    let (whole, expected) = gradients(1000);
    assert!(expected.iter().all(|(_, gradient)| gradient.iter().any(|value| *value != 0.0)));
    for max_tokens in [1, 12, 20] {
        let (split, found) = gradients(max_tokens);
        for (name, value) in whole.statistics.iter() {
            assert!((number(&split, name) - value).abs() < 1e-12, "{max_tokens}, {name}");
        }
        for ((name, a), (_, b)) in expected.iter().zip(&found) {
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{max_tokens}, {name}");
        }
    }
}

#[test]
fn it_learns_to_prefer_what_is_chosen() {
    let model = tiny_classifier(1);
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 20).unwrap();
    let steps: Vec<_> = (0..60).map(|_| trainer.reward_model_step(&model, &pairs(), &CENTRED, 1e-2).unwrap()).collect();
    let last = trainer.reward_model_stats(&model, &pairs(), &CENTRED).unwrap();
    assert_eq!((number(&last, "accuracy"), last.grad_norm), (1.0, None));
    assert!(number(&last, "loss") < number(&steps[0], "loss") / 2.0 && number(&last, "margin") > 1.0, "{last:?}");
}

#[test]
fn what_cannot_be_learned_is_named() {
    let model = tiny_classifier(1);
    let mut trainer = Trainer::new(&model, BARE, 20).unwrap();
    let mut error = |changed: ConversationPair| {
        let rows = [pairs()[0].clone(), changed];
        trainer.reward_model_step(&model, &rows, &CENTRED, 0.1).unwrap_err().to_string()
    };
    let pair = pairs()[1].clone();
    let empty = ConversationPair { rejected: vec![], ..pair.clone() };
    assert_eq!(error(empty), "row 1 of the mini-batch has an empty conversation");
    let endless = ConversationPair { margin: f64::INFINITY, ..pair.clone() };
    assert_eq!(error(endless), "row 1 of the mini-batch has the margin inf");
    let foreign = ConversationPair { chosen: vec![99], ..pair };
    assert!(error(foreign).starts_with("row 1 of the mini-batch has token id 99"));
}
