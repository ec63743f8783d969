//! Draws follow the distribution that the settings describe.

use crate::{config, model, row, stored, tokens};
use gavel_policy::{Engine, EngineConfig, Model, ModelConfig, Request, Sampling, Tensor};
use serde::Deserialize;
use std::collections::BTreeMap;

pub(crate) const DRAWS: u64 = 4000;

fn first_tokens(model: &Model, prompt: &[u32], settings: &[&Sampling]) -> Vec<u32> {
    let mut engine = Engine::new(model, EngineConfig { max_batch: 512, ..EngineConfig::default() }).unwrap();
    for (id, sampling) in (0..DRAWS).zip(settings.iter().cycle()) {
        engine.submit(Request::new(id, prompt.to_vec(), (*sampling).clone(), id)).unwrap();
    }
    let mut drawn = Vec::new();
    while !engine.is_idle() {
        drawn.extend(engine.step(model).unwrap().finished);
    }
    drawn.sort_by_key(|done| done.id);
    drawn.into_iter().map(|done| done.response[0]).collect()
}

/// The distribution by definition: temper, then cut off by min-p, top-k and top-p, token by token.
pub(crate) fn expected(logits: &[f64], sampling: &Sampling) -> Vec<f64> {
    let tempered: Vec<f64> = logits.iter().map(|logit| logit / f64::from(sampling.temperature)).collect();
    let mut probs = crate::reference::softmax(&tempered);
    let mut order: Vec<usize> = (0..probs.len()).collect();
    order.sort_by(|&a, &b| probs[b].total_cmp(&probs[a]));
    let least = f64::from(sampling.min_p) * probs[order[0]];
    probs.iter_mut().filter(|prob| **prob < least).for_each(|prob| *prob = 0.0);
    let by_rank = order.split_off(sampling.top_k.unwrap_or(order.len()).min(order.len()));
    by_rank.into_iter().for_each(|token| probs[token] = 0.0);
    let total: f64 = probs.iter().sum();
    let mut reached = 0.0;
    for &token in &order {
        let share = probs[token] / total;
        if reached >= f64::from(sampling.top_p) {
            probs[token] = 0.0;
        }
        reached += share;
    }
    let total: f64 = probs.iter().sum();
    probs.into_iter().map(|prob| prob / total).collect()
}

#[test]
fn temperature_and_truncations_give_their_distribution() {
    let model = model(config());
    let prompt = tokens(2, 5);
    let hidden = model.hidden(&row(&prompt)).unwrap();
    let logits = model.logits(&hidden).unwrap().get(0).get(4).detach();
    // Flatten the distribution, so that many tokens have a chance.
    let logits = Vec::<f64>::try_from(logits.to_kind(tch::Kind::Double)).unwrap();
    let plain = Sampling::new(1, vec![]);
    for sampling in [
        Sampling { temperature: 2.0, ..plain.clone() },
        Sampling { temperature: 4.0, top_k: Some(5), ..plain.clone() },
        Sampling { temperature: 4.0, top_p: 0.7, ..plain.clone() },
        Sampling { temperature: 4.0, min_p: 0.3, ..plain.clone() },
        Sampling { temperature: 5.0, top_k: Some(12), top_p: 0.8, min_p: 0.2, ..plain.clone() },
        Sampling { temperature: 5.0, top_k: Some(1000), ..plain.clone() },
    ] {
        let probs = expected(&logits, &sampling);
        let mut counts = vec![0.0; probs.len()];
        first_tokens(&model, &prompt, &[&sampling]).into_iter().for_each(|token| counts[token as usize] += 1.0);
        let (mut chi_square, mut freedom, mut rare) = (0.0f64, -1.0f64, (0.0, 0.0));
        for (&count, &prob) in counts.iter().zip(&probs) {
            let mean = prob * DRAWS as f64;
            if prob == 0.0 {
                assert_eq!(count, 0.0, "{sampling:?} drew a token that it cuts off");
            } else if mean < 5.0 {
                rare = (rare.0 + count, rare.1 + mean);
            } else {
                chi_square += (count - mean).powi(2) / mean;
                freedom += 1.0;
            }
        }
        if rare.1 > 0.0 {
            chi_square += (rare.0 - rare.1).powi(2) / rare.1;
            freedom += 1.0;
        }
        assert!(freedom >= 3.0, "{sampling:?} tests nothing: {freedom}");
        // The limit is four standard deviations above the mean of the
        // chi-square distribution.
        assert!(chi_square < freedom + 4.0 * (2.0 * freedom).sqrt(), "{sampling:?}: {chi_square} at {freedom}");
    }
}

/// The vocabulary is larger than the blocks that draws add up, and than the tokens that truncations sort first.
#[test]
fn of_a_large_vocabulary_the_token_at_the_uniform_number_is_drawn() {
    let model = model(ModelConfig { vocab_size: 3000, ..config() });
    let prompt = tokens(2, 5);
    let logits = model.logits(&model.hidden(&row(&prompt)).unwrap()).unwrap().get(0).get(4).detach();
    let logits = Vec::<f64>::try_from(logits.to_kind(tch::Kind::Double)).unwrap();
    let flat = Sampling { temperature: 8.0, ..Sampling::new(1, vec![]) };
    let settings = [
        flat.clone(),
        Sampling { temperature: 1.0, ..flat.clone() },
        Sampling { temperature: 0.2, top_p: 0.9, ..flat.clone() },
        // These keep more tokens than are sorted first.
        Sampling { top_p: 0.97, ..flat.clone() },
        Sampling { top_k: Some(2000), top_p: 0.95, ..flat.clone() },
        Sampling { min_p: 0.01, ..flat.clone() },
    ];
    let kept: Vec<Vec<f64>> = settings.iter().map(|sampling| expected(&logits, sampling)).collect();
    let many = |probs: &[f64]| probs.iter().filter(|prob| **prob > 0.0).count();
    assert_eq!(kept.iter().map(|probs| many(probs) > 1024).collect::<Vec<_>>(), [true, true, false, true, true, true]);
    // Where no row keeps more than are sorted first; and among rows that do.
    for among in [vec![2], vec![0, 2, 1], vec![3, 4, 5, 0]] {
        let of_rows: Vec<&Sampling> = among.iter().map(|&at| &settings[at]).collect();
        let drawn = first_tokens(&model, &prompt, &of_rows);
        for (seed, (token, &at)) in drawn.into_iter().zip(among.iter().cycle()).enumerate() {
            let (probs, token) = (&kept[at], token as usize);
            let before: f64 = probs[..token].iter().sum();
            // Logits are rounded to 32 bits.
            let (least, most) = (before - 1e-5, before + probs[token] + 1e-5);
            let uniform = gavel_data::seed::uniform(seed as u64, 0);
            assert!((least..most).contains(&uniform), "{:?}: {token} at {uniform}: {least} to {most}", settings[at]);
        }
    }
}

#[test]
fn a_neighbour_with_limits_changes_no_draw() {
    let model = model(config());
    let prompt = tokens(2, 5);
    let plain = Sampling { temperature: 3.0, ..Sampling::new(1, vec![]) };
    let cut = Sampling { top_k: Some(3), top_p: 0.9, ..plain.clone() };
    let alone = first_tokens(&model, &prompt, &[&plain]);
    let mixed = first_tokens(&model, &prompt, &[&plain, &cut, &Sampling::greedy(1, vec![])]);
    assert!(alone.iter().zip(&mixed).step_by(3).all(|(a, b)| a == b));
    assert!(mixed.iter().skip(2).step_by(3).all(|token| *token == mixed[2]));
}

#[test]
fn a_neighbour_does_not_decide_which_of_equals_is_cut_off() {
    let model = model(ModelConfig { tie_word_embeddings: false, ..config() });
    let prompt = tokens(2, 5);
    let greedy = Sampling::greedy(1, vec![]);
    let best = first_tokens(&model, &prompt, &[&greedy])[0];
    // Another token with the same logits.
    let twin = if best == 0 { 1 } else { 0 };
    let weights = model.named_weights().unwrap();
    let (_, head) = weights.iter().find(|(name, _)| name == "lm_head.weight").unwrap();
    tch::no_grad(|| head.get(twin.into()).copy_(&head.get(best.into())));
    let one = Sampling { top_k: Some(1), ..Sampling::new(1, vec![]) };
    let alone = first_tokens(&model, &prompt, &[&one]);
    assert!(alone.contains(&best) && alone.contains(&twin) && alone.iter().all(|token| [best, twin].contains(token)));
    let unlimited = Sampling { min_p: 0.01, ..Sampling::new(1, vec![]) };
    let mixed = first_tokens(&model, &prompt, &[&one, &unlimited]);
    assert!(alone.iter().zip(&mixed).step_by(2).all(|(a, b)| a == b));
}

/// A model whose logits after `prompt` are these, as far as they go, and -100 for every other token.
pub(crate) fn model_with_logits(config: ModelConfig, prompt: &[u32], logits: &[f64]) -> Model {
    let model = model(ModelConfig { tie_word_embeddings: false, ..config });
    let hidden = model.hidden(&row(prompt)).unwrap().get(0).get(prompt.len() as i64 - 1).detach();
    let hidden = hidden.to_kind(gavel_policy::Kind::Double);
    let mut all = vec![-100.0; model.config().vocab_size as usize];
    all[..logits.len()].copy_from_slice(logits);
    let head =
        Tensor::from_slice(&all).unsqueeze(1).to_device(hidden.device()) * (&hidden / hidden.dot(&hidden)).unsqueeze(0);
    let weights = model.named_weights().unwrap();
    let (_, weight) = weights.iter().find(|(name, _)| name == "lm_head.weight").unwrap();
    tch::no_grad(|| weight.shallow_clone().copy_(&head));
    model
}

/// The share of each token among the draws.
fn shares(model: &Model, prompt: &[u32], sampling: &Sampling, tokens: usize) -> Vec<f64> {
    let mut shares = vec![0.0; tokens];
    for token in first_tokens(model, prompt, &[sampling]) {
        shares[token as usize] += 1.0 / DRAWS as f64;
    }
    shares
}

#[derive(Deserialize)]
struct Cases {
    prompt: Vec<u32>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    logits: Vec<f64>,
    temperature: f32,
    top_k: Option<usize>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    #[serde(default)]
    logit_bias: BTreeMap<u32, f32>,
    /// Before tokens are cut off.
    logprobs: Vec<f64>,
    probs: Vec<f64>,
}

/// The cases are what vLLM draws from (`tests/parity/sampling.py`).
#[test]
fn every_step_is_in_the_order_of_vllm() {
    let Cases { prompt, cases } =
        serde_json::from_str(&std::fs::read_to_string(stored("sampling.json")).unwrap()).unwrap();
    assert_eq!(cases.len(), 22);
    for case in cases {
        let sampling = Sampling {
            temperature: case.temperature,
            top_k: case.top_k,
            top_p: case.top_p.unwrap_or(1.0),
            min_p: case.min_p.unwrap_or(0.0),
            repetition_penalty: case.repetition_penalty.unwrap_or(1.0),
            logit_bias: case.logit_bias.into_iter().collect(),
            ..Sampling::new(1, vec![])
        };
        let config = ModelConfig { vocab_size: case.logits.len() as i64, ..config() };
        let model = model_with_logits(config, &prompt, &case.logits);
        let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
        let request = Request::new(0, prompt.clone(), sampling.clone(), 0);
        engine.submit(Request { top_logprobs: case.logits.len(), ..request }).unwrap();
        let top = engine.step(&model).unwrap().drawn.remove(0).top;
        assert_eq!(top.len(), case.logits.len());
        for (token, logprob) in top {
            let right = case.logprobs[token as usize];
            assert!((f64::from(logprob) - right).abs() < 1e-4, "{sampling:?}: {logprob} is not {right}");
        }
        for (seed, token) in first_tokens(&model, &prompt, &[&sampling]).into_iter().enumerate() {
            let before: f64 = case.probs[..token as usize].iter().sum();
            let (least, most) = (before - 1e-4, before + case.probs[token as usize] + 1e-4);
            let uniform = gavel_data::seed::uniform(seed as u64, 0);
            assert!(case.probs[token as usize] > 0.0, "{sampling:?} drew {token}");
            assert!((least..most).contains(&uniform), "{sampling:?}: {token} at {uniform}: {least} to {most}");
        }
    }
}

/// The numbers are by hand: of 0.4, 0.3, 0.15, 0.1 and 0.05, min-p 0.3 leaves 0.4, 0.3 and 0.15, of which top-p 0.8
/// leaves two, as the two are 0.82 of the 0.85. Of all five, top-p 0.8 would leave three, and so would min-p then.
#[test]
fn min_p_is_applied_before_top_p() {
    let prompt = tokens(2, 5);
    let logits = [0.4f64, 0.3, 0.15, 0.1, 0.05].map(f64::ln);
    let plain = Sampling { top_p: 0.8, min_p: 0.3, ..Sampling::new(1, vec![]) };
    let most = ModelConfig { vocab_size: 3000, ..config() };
    // All tokens are sorted, or the most probable ones.
    for (config, count) in [(config(), 6), (most, 2)] {
        let model = model_with_logits(config, &prompt, &logits);
        let cases = [
            (plain.clone(), vec![0.4, 0.3]),
            (Sampling { min_p: 0.0, ..plain.clone() }, vec![0.4, 0.3, 0.15]),
            (Sampling { top_p: 1.0, ..plain.clone() }, vec![0.4, 0.3, 0.15]),
            // Top-k leaves 0.4, 0.3 and 0.15 too, and top-p 0.83 all of them.
            (Sampling { top_k: Some(3), min_p: 0.0, top_p: 0.83, ..plain.clone() }, vec![0.4, 0.3, 0.15]),
            (Sampling { top_k: Some(3), min_p: 0.3, ..plain.clone() }, vec![0.4, 0.3]),
            (Sampling { top_k: Some(2), top_p: 0.5, ..plain.clone() }, vec![0.4]),
        ];
        for (sampling, left) in cases.into_iter().take(count) {
            let found = shares(&model, &prompt, &sampling, 5);
            let total: f64 = left.iter().sum();
            for (token, share) in found.into_iter().enumerate() {
                match left.get(token) {
                    None => assert_eq!(share, 0.0, "{sampling:?} drew {token}"),
                    // Five standard deviations.
                    Some(prob) => assert!((share - prob / total).abs() < 0.04, "{sampling:?} drew {token}: {share}"),
                }
            }
        }
    }
}

/// Token 3, in the prompt, has (2 - 1) / 2 with a bias of -1 and a penalty of 2, not 2 / 2 - 1; token 4 has
/// (1 - 2) * 2, not 1 / 2 - 2.
#[test]
fn biases_are_added_before_the_penalty() {
    let prompt = [5, 4, 3];
    let model = model_with_logits(config(), &prompt, &[0.25, 0.25, 0.25, 2.0, 1.0, -1.0]);
    let sampling =
        Sampling { repetition_penalty: 2.0, logit_bias: vec![(3, -1.0), (4, -2.0)], ..Sampling::greedy(1, vec![]) };
    let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
    let request = Request { top_logprobs: 6, ..Request::new(0, prompt.to_vec(), sampling, 0) };
    engine.submit(request).unwrap();
    let drawn = engine.step(&model).unwrap().drawn.remove(0);
    let expected = [0.25f64, 0.25, 0.25, 0.5, -2.0, -2.0];
    let normal = expected.iter().map(|logit| logit.exp()).sum::<f64>().ln();
    assert_eq!(drawn.token, 3);
    for (token, logprob) in drawn.top {
        let right = expected[token as usize] - normal;
        assert!((f64::from(logprob) - right).abs() < 1e-4, "token {token}: {logprob} is not {right}");
    }
}

#[test]
fn penalties_and_biases_change_the_logits() {
    let model = model(config());
    let prompt = tokens(2, 5);
    let logits = model.logits(&model.hidden(&row(&prompt)).unwrap()).unwrap().get(0).get(4).detach();
    let logits = Vec::<f64>::try_from(logits.to_kind(tch::Kind::Double)).unwrap();
    let best = |logits: &[f64]| (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32;
    let greedy = Sampling::greedy(1, vec![]);
    let first = |sampling: Sampling| {
        let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
        // A neighbour without any, whose draw stays.
        engine.submit(Request::new(0, prompt.clone(), sampling, 0)).unwrap();
        engine.submit(Request::new(1, prompt.clone(), greedy.clone(), 0)).unwrap();
        let finished = engine.step(&model).unwrap().finished;
        assert_eq!(finished[1].response, [best(&logits)]);
        (finished[0].response[0], f64::from(finished[0].logprobs[0]))
    };
    let bias = vec![(best(&logits), -50.0), (7, 30.0), (7, 10.0)];
    let (token, logprob) = first(Sampling { logit_bias: bias, ..greedy.clone() });
    assert!(token == 7 && logprob > -1e-3, "{token} {logprob}");

    let mut changed = logits.clone();
    for &token in &prompt.iter().copied().collect::<std::collections::BTreeSet<u32>>() {
        let logit = &mut changed[token as usize];
        *logit = if *logit > 0.0 { *logit / 3.0 } else { *logit * 3.0 };
    }
    let (token, logprob) = first(Sampling { repetition_penalty: 3.0, ..greedy.clone() });
    assert_eq!(token, best(&changed));
    assert!((crate::reference::softmax(&changed)[token as usize].ln() - logprob).abs() < 1e-4);

    // What was drawn counts too: with this penalty nothing comes twice.
    let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
    let sampling = Sampling { repetition_penalty: 100.0, ..Sampling::greedy(12, vec![]) };
    engine.submit(Request::new(0, prompt.clone(), sampling, 0)).unwrap();
    let mut response = Vec::new();
    while !engine.is_idle() {
        response.extend(engine.step(&model).unwrap().drawn.into_iter().map(|drawn| drawn.token));
    }
    let distinct: std::collections::BTreeSet<u32> = response.iter().chain(&prompt).copied().collect();
    let of_prompt: std::collections::BTreeSet<u32> = prompt.iter().copied().collect();
    assert_eq!(distinct.len(), of_prompt.len() + 12);
}

/// OpenAI's formula, after the penalty on repetitions as in vLLM, with the tokens of the response alone.
#[test]
fn presence_and_frequency_penalties_are_of_the_response() {
    let model = model(config());
    let prompt = tokens(2, 5);
    let plain = Sampling { logit_bias: vec![(7, 6.0), (9, 5.5)], ..Sampling::greedy(12, vec![]) };
    let settings = [
        Sampling { presence_penalty: 1.5, ..plain.clone() },
        Sampling { frequency_penalty: 0.4, ..plain.clone() },
        Sampling { presence_penalty: -0.5, frequency_penalty: 0.7, repetition_penalty: 1.3, ..plain.clone() },
        plain.clone(),
    ];
    let mut engine = Engine::new(&model, EngineConfig::default()).unwrap();
    for (id, sampling) in (0..).zip(&settings) {
        engine.submit(Request::new(id, prompt.clone(), sampling.clone(), 0)).unwrap();
    }
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(&model).unwrap().finished);
    }
    finished.sort_by_key(|done| done.id);
    for (done, of) in finished.iter().zip(&settings).take(3) {
        assert_ne!(done.response, finished[3].response, "{of:?}");
        let mut before = prompt.clone();
        for (at, (&token, &logprob)) in done.response.iter().zip(&done.logprobs).enumerate() {
            let hidden = model.hidden(&row(&before)).unwrap();
            let logits = model.logits(&hidden).unwrap().get(0).get(before.len() as i64 - 1).detach();
            let mut logits = Vec::<f64>::try_from(logits.to_kind(tch::Kind::Double)).unwrap();
            of.logit_bias.iter().for_each(|(token, bias)| logits[*token as usize] += f64::from(*bias));
            for (other, logit) in (0..).zip(&mut logits) {
                if before.contains(&other) {
                    let factor = f64::from(of.repetition_penalty);
                    *logit = if *logit > 0.0 { *logit / factor } else { *logit * factor };
                }
                let count = done.response[..at].iter().filter(|earlier| **earlier == other).count();
                let presence = if count > 0 { f64::from(of.presence_penalty) } else { 0.0 };
                *logit -= presence + count as f64 * f64::from(of.frequency_penalty);
            }
            let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
            assert_eq!(best, token as usize, "{of:?}: token {at}");
            let right = crate::reference::softmax(&logits)[best].ln();
            assert!((f64::from(logprob) - right).abs() < 1e-4, "{of:?}: token {at}: {logprob} is not {right}");
            before.push(token);
        }
    }
}
