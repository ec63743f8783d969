//! Steps of several ranks against the steps of one process. Each test starts ranks, which are processes of this test's
//! executable.

use super::*;
use crate::memory::{SharedBy, TrainingFootprint};
use crate::optimizer::tests::{held, spanned, stored, with_gradient};
use crate::ranks::Message;
use crate::testing::{tiny_classifier, tiny_critic, tokens};
use crate::{
    BradleyTerryConfig, ConversationPair, DpoConfig, OffPolicyConfig, ResponsePair, RolloutIs, RolloutRs, SftRow,
    ValueLossConfig, shares,
};
use gavel_policy::memory::Footprint;
use gavel_policy::{Device, Moment, Packed, PackedRow, Stage};
use gavel_torch::peers::Peers;
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use tch::Kind;
use tokio::net::TcpSocket;

/// The variable that says what a rank does.
const CASE: &str = "GAVEL_TEST_CASE";

/// How far a number may be from the number of one process, relative to the largest number.
const ROUNDING: f64 = 1e-11;

/// A port at which rank 0 may listen, and which is nobody else's while the socket is there.
fn reserved_port() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

fn run(case: &str, size: usize) {
    let (_reserved, port) = reserved_port();
    let start = |rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["trainer::tests::ranks::a_rank", "--exact", "--nocapture"]).env(CASE, case);
        command.envs([
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", port.to_string().as_str()),
            ("OMP_NUM_THREADS", "1"),
        ]);
        command.env("RANK", rank.to_string()).env("WORLD_SIZE", size.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let ranks: Vec<Child> = (0..size).map(start).collect();
    let outputs: Vec<_> = ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect();
    for (rank, output) in outputs.iter().enumerate() {
        let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        assert!(output.status.success(), "{case}, rank {rank} of {size}: {text}");
    }
}

/// Not a test by itself: a rank of one.
#[test]
fn a_rank() {
    let Ok(case) = std::env::var(CASE) else { return };
    let peers = Peers::from_environment().unwrap();
    match case.as_str() {
        "losses" => losses(&peers),
        "steps" => {
            for held in [Parameters::Whole, Parameters::ByLayer] {
                supervised(&peers, held);
                preferences(&peers, held);
                values_of_a_critic(&peers, held);
            }
        }
        "runs" => runs(&peers),
        "errors" => errors(&peers),
        "sums" => sums(&peers),
        "layers" => {
            steps_by_layer(&peers);
            parts_of_layers(&peers);
        }
        "steps by layer" => steps_by_layer(&peers),
        "memory" => memory(&peers),
        other => panic!("{other}"),
    }
}

#[test]
fn every_loss_and_aggregation_is_that_of_one_process() {
    [1, 2, 3, 8].into_iter().for_each(|size| run("losses", size));
}

#[test]
fn other_steps_are_those_of_one_process() {
    [2, 8].into_iter().for_each(|size| run("steps", size));
}

#[test]
fn runs_are_those_of_one_process_and_repeat_and_resume_bit_for_bit() {
    [2, 3].into_iter().for_each(|size| run("runs", size));
}

#[test]
fn an_error_of_one_rank_is_one_of_all() {
    run("errors", 3);
}

#[test]
fn gradients_are_summed_while_the_backward_pass_goes_on_and_kept_by_one_rank() {
    [1, 2, 3, 8].into_iter().for_each(|size| run("sums", size));
}

#[test]
fn layers_in_parts_have_the_steps_of_one_process_and_hold_their_share() {
    [1, 2, 3].into_iter().for_each(|size| run("layers", size));
    run("steps by layer", 8);
}

#[test]
fn a_rank_takes_the_memory_that_is_predicted() {
    [1, 2, 4].into_iter().for_each(|size| run("memory", size));
}

/// 15 rows of two groups, 8 and 7, of different lengths; the policy did not write some of their tokens.
fn grouped(model: &Model) -> Vec<Experience> {
    let row = |row: usize| {
        let (group, length) = (row / 8, 1 + (row * 5) % 9);
        Experience {
            sample: SampleId { group, index: row % 8, trajectory: 0 },
            prompt: tokens(300 + group as u64, 3 + 4 * group),
            response: tokens(400 + row as u64, length),
            loss_mask: (0..length).map(|at| (at + row) % 4 != 3).collect(),
            logprobs: vec![0.0; length],
            advantages: (0..length).map(|at| ((3 * row + at) as f32).sin()).collect(),
            ..Default::default()
        }
    };
    let mut rows: Vec<Experience> = (0..15).map(row).collect();
    // Two trajectories of one sample.
    rows[4].sample = rows[3].sample;
    let logprobs = crate::log_probs(model, &rows, 0.7, 1000).unwrap();
    rows.iter_mut().zip(logprobs).for_each(|(row, logprobs)| row.logprobs = logprobs);
    Trainer::new(model, BARE, 64).unwrap().set_proximal(model, &mut rows, 0.7).unwrap();
    off_policy(rows)
}

/// A trainer with the other ranks.
fn together(peers: &Peers, model: &Model, config: OptimizerConfig, max_tokens: usize, held: Parameters) -> Trainer {
    Trainer::with_peers(model, config, max_tokens, peers.clone(), held).unwrap()
}

/// Shares by tokens, and ones that are not even.
fn divisions(rows: &[Experience], ranks: usize) -> Vec<Vec<Range<usize>>> {
    let by_tokens = shares(rows.iter().map(|row| (&row.prompt[..], row.response.len())), ranks);
    let mut of_the_last = vec![0..0; ranks];
    of_the_last[ranks - 1] = 0..rows.len();
    vec![by_tokens, of_the_last]
}

fn assert_same(what: &str, found: &UpdateStats, expected: &UpdateStats) {
    assert_eq!(found.tokens, expected.tokens, "{what}");
    assert_numbers(ROUNDING, what, &numbers(found), &numbers(expected));
}

/// The statistics of an update by name.
fn numbers(stats: &UpdateStats) -> Vec<(String, f64)> {
    stats.statistics.iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn assert_numbers(rounding: f64, what: &str, found: &[(String, f64)], expected: &[(String, f64)]) {
    assert_eq!(found.len(), expected.len(), "{what}: {found:?}, {expected:?}");
    for ((name, found), (expected_name, expected)) in found.iter().zip(expected) {
        let is_close = (found - expected).abs() <= rounding * expected.abs().max(1.0);
        assert!(name == expected_name && is_close, "{what}: {name} {found}, {expected_name} {expected}");
    }
}

/// Asserts that the gradients whose moments this rank has equal the gradients of one process.
fn assert_gradients(what: &str, model: &Model, found: &Trainer, expected: &Trainer) {
    assert_gradients_are(what, model, found, &last_gradients(model, expected));
}

fn assert_gradients_are(what: &str, model: &Model, found: &Trainer, expected: &[(String, Vec<f64>)]) {
    let largest = expected.iter().flat_map(|(_, values)| values).fold(0.0, |most: f64, value| most.max(value.abs()));
    for ((name, found), (_, expected)) in last_gradients(model, found).iter().zip(expected) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= ROUNDING * largest, "{what}, {name}: {found} is not {expected}");
        }
    }
}

/// What rank 0 computes by itself, for every rank: each would compute the same.
fn of_rank_0<T: Message>(peers: &Peers, compute: impl FnOnce() -> T) -> T {
    let mut own = Vec::new();
    if peers.rank() == 0 {
        compute().write(&mut own);
    }
    let all = peers.gather(&own).unwrap();
    T::read(&mut all[0].as_slice()).unwrap()
}

fn losses(peers: &Peers) {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let correction = |rollout_is, rollout_rs| OffPolicyConfig {
        rollout_is,
        rollout_rs,
        rollout_is_batch_normalize: true,
        ..Default::default()
    };
    let mut cases: Vec<(String, LossConfig)> =
        AGGREGATIONS.iter().map(|&aggregation| (format!("{aggregation:?}"), config(aggregation))).collect();
    cases.extend(PolicyLoss::all().into_iter().map(|(name, policy)| {
        let aggregation = policy.aggregation();
        (name, LossConfig { policy, aggregation, norm_tokens: Some(9), ..Default::default() })
    }));
    for (is, rs) in [(RolloutIs::Token, RolloutRs::Token), (RolloutIs::Sequence, RolloutRs::Geometric)] {
        let old_logprobs = Some(OldLogProbs::Proximal);
        let corrected = LossConfig { old_logprobs, off_policy: Some(correction(is, rs)), ..Default::default() };
        cases.push((format!("{is:?}, {rs:?}"), corrected));
    }
    let few = off_policy(experiences(&model, 0.7));
    let few = few.into_iter().map(|row| Experience { proximal: row.logprobs.clone(), ..row }).collect::<Vec<_>>();
    for (rows, temperature) in [(grouped(&model), 0.7), (few, 1.0)] {
        for (name, config) in &cases {
            let update = |trainer: &mut Trainer, rows: &[Experience]| {
                trainer.update(policy_update(&model, Some(&reference), rows, config, temperature, 0.0)).unwrap()
            };
            let (tokens, (expected, gradients)) = of_rank_0(peers, || {
                let mut one = Trainer::new(&model, BARE, 24).unwrap();
                let stats = update(&mut one, &rows);
                (stats.tokens, (numbers(&stats), last_gradients(&model, &one)))
            });
            for division in divisions(&rows, peers.size()) {
                let what = format!("{name}, {division:?}");
                let own = &rows[division[peers.rank()].clone()];
                let mut several = together(peers, &model, BARE, 24, Parameters::Whole);
                let found = update(&mut several, own);
                assert_eq!(found.tokens, tokens, "{what}");
                assert_numbers(ROUNDING, &what, &numbers(&found), &expected);
                assert_gradients_are(&what, &model, &several, &gradients);
            }
        }
    }
}

/// The part of this rank of `count` items; the first rank has none.
fn part(peers: &Peers, count: usize) -> Range<usize> {
    let others = peers.size() - 1;
    let bound = |rank: usize| count * rank.saturating_sub(1) / others;
    bound(peers.rank())..if peers.rank() == 0 { 0 } else { bound(peers.rank() + 1) }
}

fn supervised(peers: &Peers, held: Parameters) {
    let model = tiny_f64(1);
    let row = |at: u64| SftRow { prompt: tokens(at, 2), response: tokens(50 + at, 1 + at as usize) };
    let rows: Vec<SftRow> = (0..5).map(row).collect();
    let mut one = Trainer::new(&model, BARE, 8).unwrap();
    let expected = one.sft_step(&model, &rows, 0.0).unwrap();
    let mut several = together(peers, &model, BARE, 8, held);
    let own = part(peers, 5);
    let found = several.sft_step(&model, &rows[own.clone()], 0.0).unwrap();
    assert_eq!(found.row_losses.len(), own.len());
    let row_losses = found.row_losses.iter().zip(&expected.row_losses[own]);
    assert!(row_losses.into_iter().all(|(found, expected)| (found - expected).abs() < ROUNDING));
    assert_eq!((found.tokens, found.token_accuracy), (expected.tokens, expected.token_accuracy));
    assert!((found.loss - expected.loss).abs() < ROUNDING && (found.grad_norm - expected.grad_norm).abs() < ROUNDING);
    assert_gradients("sft", &model, &several, &one);
}

fn preferences(peers: &Peers, held: Parameters) {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let row =
        |at: u64, which: u64| SftRow { prompt: tokens(at, 3), response: tokens(60 + 2 * at + which, 2 + at as usize) };
    let pairs: Vec<ResponsePair> = (0..5).map(|at| ResponsePair { chosen: row(at, 0), rejected: row(at, 1) }).collect();
    let pair_stats = |stats: crate::PairStats| {
        let mut statistics = stats.statistics;
        statistics.extend(stats.grad_norm.map(|norm| ("grad_norm", norm)));
        UpdateStats { tokens: stats.tokens, statistics }
    };
    let mut one = Trainer::new(&model, BARE, 24).unwrap();
    let mut several = together(peers, &model, BARE, 24, held);
    let dpo = |trainer: &mut Trainer, pairs: &[ResponsePair]| {
        pair_stats(trainer.dpo_step(&model, &reference, pairs, &DpoConfig::default(), 0.0).unwrap())
    };
    let expected = dpo(&mut one, &pairs);
    assert_same("dpo", &dpo(&mut several, &pairs[part(peers, 5)]), &expected);
    assert_gradients("dpo", &model, &several, &one);
    // Held-out pairs, fewer than ranks too.
    for pairs in [&pairs[..], &pairs[..1]] {
        let measured = |trainer: &Trainer, pairs: &[ResponsePair]| {
            pair_stats(trainer.dpo_stats(&model, &reference, pairs, &DpoConfig::default()).unwrap())
        };
        let found = measured(&several, &pairs[part(peers, pairs.len())]);
        assert_same("held out", &found, &measured(&one, pairs));
    }

    let model = tiny_classifier(1);
    let pair = |at: u64| ConversationPair {
        chosen: tokens(at, 4 + at as usize),
        rejected: tokens(90 + at, 3),
        margin: at as f64 / 10.0,
    };
    let pairs: Vec<ConversationPair> = (0..5).map(pair).collect();
    let mut one = Trainer::new(&model, BARE, 24).unwrap();
    let mut several = together(peers, &model, BARE, 24, held);
    let step = |trainer: &mut Trainer, pairs: &[ConversationPair]| {
        pair_stats(trainer.reward_model_step(&model, pairs, &BradleyTerryConfig::default(), 0.0).unwrap())
    };
    let expected = step(&mut one, &pairs);
    let found = step(&mut several, &pairs[part(peers, 5)]);
    // One process computes a beginning once that pairs on several ranks have in common.
    assert!(found.tokens >= expected.tokens);
    assert_same("reward model", &UpdateStats { tokens: expected.tokens, ..found }, &expected);
    assert_gradients("reward model", &model, &several, &one);
    for pairs in [&pairs[..], &pairs[..1]] {
        let measured = |trainer: &Trainer, pairs: &[ConversationPair]| {
            pair_stats(trainer.reward_model_stats(&model, pairs, &BradleyTerryConfig::default()).unwrap())
        };
        let expected = measured(&one, pairs);
        let found = measured(&several, &pairs[part(peers, pairs.len())]);
        assert_same("held out", &UpdateStats { tokens: expected.tokens, ..found }, &expected);
    }
}

fn values_of_a_critic(peers: &Peers, held: Parameters) {
    let critic = tiny_critic(1);
    let mut rows = experiences(&tiny(1), 1.0);
    let found = Trainer::new(&critic, BARE, 64).unwrap().values(&critic, &rows).unwrap();
    for (row, values) in rows.iter_mut().zip(found) {
        row.returns = values.iter().map(|value| value * 2.0 - 0.5).collect();
        row.values = values;
    }
    let config = ValueLossConfig::default();
    let mut one = Trainer::new(&critic, BARE, 24).unwrap();
    let expected = one.value_step(&critic, &rows, &config, 0.0).unwrap();
    let mut several = together(peers, &critic, BARE, 24, held);
    assert_same("critic", &several.value_step(&critic, &rows[part(peers, 5)], &config, 0.0).unwrap(), &expected);
    assert_gradients("critic", &critic, &several, &one);
}

/// Two updates that change the model.
fn two_updates(trainer: &mut Trainer, model: &Model, rows: &[Experience]) -> Vec<UpdateStats> {
    let update = |_| trainer.update(policy_update(model, None, rows, &LossConfig::default(), 0.7, 1e-2)).unwrap();
    (0..2).map(update).collect()
}

/// The weights of a model by name.
fn weights(model: &Model) -> Vec<(String, Vec<f64>)> {
    model.parameters().into_iter().map(|(name, parameter)| (name, values(&parameter))).collect()
}

/// All weights of a model, as bits.
fn bits(model: &Model) -> Vec<u8> {
    let all = model.parameters().into_iter().flat_map(|(_, parameter)| values(&parameter));
    all.flat_map(f64::to_le_bytes).collect()
}

fn runs(peers: &Peers) {
    let rows = grouped(&tiny_f64(1));
    let own = &rows[divisions(&rows, peers.size())[0][peers.rank()].clone()];
    let folder = tempfile::tempdir().unwrap();
    let kinds = [Kind::Double, Kind::Float, Kind::BFloat16];
    let plain = kinds.map(|kind| (kind, OptimizerKind::Adamw));
    let others = [
        (Kind::Double, OptimizerKind::Adamw8Bit),
        (Kind::Double, OptimizerKind::Muon),
        (Kind::BFloat16, OptimizerKind::Muon),
    ];
    let cases = plain.into_iter().chain(others);
    let cases = cases.flat_map(|case| [Parameters::Whole, Parameters::ByLayer].map(|held| (case, held)));
    for ((kind, optimizer), held) in cases {
        // Large enough for running means of 8 bits.
        let wide = gavel_policy::ModelConfig {
            hidden_size: 64,
            intermediate_size: 48,
            head_dim: 32,
            initializer_range: 0.05,
            ..tiny(1).config().clone()
        };
        let of_seed = |seed| match optimizer {
            OptimizerKind::Adamw8Bit => Model::random(wide.clone(), seed, Device::Cpu).unwrap(),
            _ => tiny(seed),
        };
        // Other ranks begin with other weights, until they get the weights of rank 0.
        let model = |seed: u64| of_seed(seed).to_kind(kind).unwrap();
        let trainer = |model: &Model, peers: Peers| {
            let config = OptimizerConfig { kind: optimizer, ..OptimizerConfig::default() };
            Trainer::with_peers(model, config, 24, peers, held).unwrap()
        };
        let mut outcomes = Vec::new();
        for again in 0..2 {
            let several = model(1 + peers.rank() as u64);
            let mut joined = trainer(&several, peers.clone());
            two_updates(&mut joined, &several, own);
            let has_8_bits = |at| joined.optimizer.state_of(at).len() == 4;
            let has_8_bits = (0..several.parameters().len()).any(has_8_bits);
            let has_8_bits = peers.gather(&[u8::from(has_8_bits)]).unwrap().concat().contains(&1);
            assert_eq!(has_8_bits, optimizer == OptimizerKind::Adamw8Bit);
            // Rank 0 writes, and the others read what it wrote.
            let path = folder.path().join(format!("{again}.safetensors"));
            joined.save(&path).unwrap();
            let file = peers.gather(&std::fs::read(&path).unwrap_or_default()).unwrap().swap_remove(0);
            std::fs::write(&path, file).unwrap();
            let (resumed, alone) = (model(1), model(1));
            for (other, saved) in
                [&resumed, &alone].iter().flat_map(|other| other.parameters().into_iter().zip(several.parameters()))
            {
                tch::no_grad(|| other.1.shallow_clone().copy_(&saved.1));
            }
            let stats = two_updates(&mut joined, &several, own);
            let weights = bits(&several);
            assert!(peers.gather(&weights).unwrap().iter().all(|other| *other == weights), "ranks have other weights");

            let mut again = trainer(&resumed, peers.clone());
            again.load(&path).unwrap();
            assert_eq!(two_updates(&mut again, &resumed, own), stats);
            assert_eq!(bits(&resumed), weights);
            // One process goes on from it too.
            let mut one = trainer(&alone, Peers::alone());
            one.load(&path).unwrap();
            let expected = two_updates(&mut one, &alone, &rows);
            if kind == Kind::Double {
                stats.iter().zip(&expected).for_each(|(found, expected)| assert_same("a run", found, expected));
                for ((name, found), (_, expected)) in several.parameters().iter().zip(&alone.parameters()) {
                    for (found, expected) in values(found).iter().zip(values(expected)) {
                        assert!((found - expected).abs() < 1e-7, "{name}: {found} is not {expected}");
                    }
                }
            }
            outcomes.push((stats, weights));
        }
        assert!(outcomes[0] == outcomes[1], "two runs in {kind:?} with {optimizer:?} differ, {held:?}");
    }
}

fn sums(peers: &Peers) {
    let model = tiny_f64(1);
    let mut trainer = together(peers, &model, BARE, 24, Parameters::Whole);
    let gradients = || model.parameters().iter().map(|(_, x)| u8::from(x.grad().defined())).collect::<Vec<u8>>();
    let packed = Packed::new(&[PackedRow { after: None, tokens: tokens(1, 5) }], Device::Cpu).unwrap();
    let pass = TrainingPass::new(&model, &packed, false).unwrap();
    pass.hidden().square().sum(Kind::Double).backward();
    let mut freed = Vec::new();
    let complete = |moment| {
        let Moment::After(stage) = moment else { return Ok(()) };
        let before = gradients();
        trainer.optimizer.complete(stage)?;
        freed.push((stage, before != gradients()));
        Ok::<(), TrainError>(())
    };
    pass.backward_in_stages(complete).unwrap();
    let early = freed.iter().any(|(stage, freed)| *freed && *stage < Stage::Embedding);
    assert_eq!(early, peers.size() > 1, "{freed:?}");
    let owners = peers.gather(&gradients()).unwrap();
    for (at, (name, _)) in model.parameters().iter().enumerate() {
        assert_eq!(owners.iter().filter(|gradients| gradients[at] == 1).count(), 1, "{name}");
    }
    trainer.optimizer.zero_grad().unwrap();
}

fn errors(peers: &Peers) {
    let model = tiny(1);
    let rows = grouped(&model);
    let own = &rows[divisions(&rows, peers.size())[0][peers.rank()].clone()];
    for held in [Parameters::Whole, Parameters::ByLayer] {
        let trainer = Trainer::with_peers(&model, OptimizerConfig::default(), 24, peers.clone(), held).unwrap();
        errors_of(peers, trainer, &model, own);
    }
}

fn errors_of(peers: &Peers, mut trainer: Trainer, model: &Model, own: &[Experience]) {
    let before = bits(model);
    let mut error = |change: fn(&mut Experience)| {
        let mut own = own.to_vec();
        if peers.rank() == 1 {
            change(&mut own[0]);
        }
        trainer.update(policy_update(model, None, &own, &LossConfig::default(), 0.7, 1e-2)).unwrap_err().to_string()
    };
    let wrong = error(|row| row.advantages[0] = f32::NAN);
    let what = "row 0 of the mini-batch has the advantage NaN at response token 0";
    if peers.rank() == 1 {
        assert_eq!(wrong, what);
    } else {
        assert!(wrong.starts_with("rank 1 (process ") && wrong.ends_with(&format!(" failed: {what}")), "{wrong}");
    }
    let infinite = error(|row| {
        row.advantages.fill(-f32::MAX);
        row.loss_mask.fill(true);
        row.logprobs.fill(-100.0);
    });
    assert_eq!(
        infinite,
        "optimiser step 0: the loss is inf; nothing was changed\nhint: lower the learning rate, or look for damaged weights"
    );
    // One that comes up in the backward pass, after some sums have begun.
    if peers.rank() == 1 {
        let _ = model.parameters()[0].1.set_requires_grad(false);
    }
    let frozen =
        trainer.update(policy_update(model, None, own, &LossConfig::default(), 0.7, 1e-2)).unwrap_err().to_string();
    let _ = model.parameters()[0].1.set_requires_grad(true);
    assert!(frozen.contains("parameter `model.embed_tokens.weight` got no gradient"), "{frozen}");
    assert_eq!(frozen.starts_with("rank 1 (process "), peers.rank() != 1, "{frozen}");
    let nothing =
        trainer.update(policy_update(model, None, &[], &LossConfig::default(), 0.7, 1e-2)).unwrap_err().to_string();
    assert!(nothing.starts_with("the mini-batch of 0 rows has no token to learn from"), "{nothing}");
    assert_eq!(bits(model), before);
    // The ranks are still together.
    two_updates(&mut trainer, model, own);
}

/// Two updates with layers in parts are equal to the updates of one process, also where ranks have no rows.
fn steps_by_layer(peers: &Peers) {
    // Steps that are smooth in the gradient: rounding must not decide their direction.
    let smooth = OptimizerConfig { eps: 1.0, ..BARE };
    let rows = grouped(&tiny_f64(1));
    let loss = LossConfig { old_logprobs: Some(OldLogProbs::Current), ..Default::default() };
    for (kind, rounding) in [(Kind::Double, ROUNDING), (Kind::Float, 1e-4), (Kind::BFloat16, 0.05)] {
        let model = || tiny(1).to_kind(kind).unwrap();
        let updates = of_rank_0(peers, || {
            let alone = model();
            let mut one = Trainer::new(&alone, smooth, 24).unwrap();
            let update = |_| {
                let stats = one.update(policy_update(&alone, None, &rows, &loss, 0.7, 0.5)).unwrap();
                (stats.tokens, (numbers(&stats), weights(&alone)))
            };
            let updates: Vec<_> = (0..2).map(update).collect();
            assert!(bits(&alone) != bits(&model()), "nothing was learned");
            updates
        });
        for division in divisions(&rows, peers.size()) {
            let own = &rows[division[peers.rank()].clone()];
            let shared = model();
            let several = Trainer::with_peers(&shared, smooth, 24, peers.clone(), Parameters::ByLayer);
            let mut several = several.unwrap();
            for (tokens, (expected, weights_of_one)) in &updates {
                let found = several.update(policy_update(&shared, None, own, &loss, 0.7, 0.5)).unwrap();
                let what = format!("{kind:?}, {division:?}");
                assert_eq!(found.tokens, *tokens, "{what}");
                assert_numbers(rounding, &what, &numbers(&found), expected);
                for ((name, found), (_, expected)) in weights(&shared).iter().zip(weights_of_one) {
                    for (found, expected) in found.iter().zip(expected) {
                        let is_close = (found - expected).abs() <= rounding * expected.abs().max(1.0);
                        assert!(is_close, "{what}, {name}: {found} is not {expected}");
                    }
                }
            }
        }
    }
}

fn bytes(tensor: &Tensor) -> usize {
    tensor.numel() * tensor.kind().elt_size_in_bytes()
}

/// What a rank holds in an update with layers in parts. Rank 0 has no micro-batch, and the last has the most.
fn parts_of_layers(peers: &Peers) {
    let config = gavel_policy::ModelConfig { num_hidden_layers: 6, ..tiny(1).config().clone() };
    for kind in [Kind::Float, Kind::BFloat16] {
        let model = Model::random(config.clone(), 1, Device::Cpu).unwrap().to_kind(kind).unwrap();
        let trainer = Trainer::with_peers(&model, BARE, 24, peers.clone(), Parameters::ByLayer);
        let mut trainer = trainer.unwrap();
        let is_layer = |name: &str| matches!(Stage::of(name), Stage::Layer(_));
        let of_layers = || model.parameters().into_iter().filter(|(name, _)| is_layer(name)).map(|(_, tensor)| tensor);
        let all: usize = model.parameters().iter().map(|(_, tensor)| bytes(tensor)).sum();
        let of_all_layers: usize = of_layers().map(|tensor| bytes(&tensor)).sum();
        let layer = of_all_layers / 6;
        // What is left of a tensor that is freed is one number.
        let held_by = |bytes: fn(&Tensor) -> usize| -> usize {
            of_layers().map(|tensor| bytes(&tensor)).filter(|bytes| *bytes > 8).sum()
        };
        let held = || held_by(spanned);
        assert_eq!(held(), of_all_layers, "before an update");

        let packed = Packed::new(&[PackedRow { after: None, tokens: tokens(1, 5) }], Device::Cpu).unwrap();
        let (mut between, mut within, mut gradients) = (Vec::new(), Vec::new(), Vec::new());
        trainer.optimizer.begin_update(peers.rank()).unwrap();
        for _ in 0..peers.rank() {
            let pass = TrainingPass::in_stages(&model, &packed, true, |moment| {
                trainer.optimizer.forward(moment)?;
                if matches!(moment, Moment::Before(Stage::Layer(_))) { &mut within } else { &mut between }.push(held());
                Ok::<(), TrainError>(())
            });
            let pass = pass.unwrap();
            pass.hidden().square().sum(Kind::Double).backward();
            let visit = |moment| {
                if let Moment::After(stage) = moment {
                    gradients.extend(with_gradient(&trainer.optimizer).into_iter().map(|name| (stage, name)));
                }
                trainer.optimizer.backward(moment, true)?;
                if matches!(moment, Moment::Before(Stage::Layer(_))) { &mut within } else { &mut between }.push(held());
                Ok::<(), TrainError>(())
            };
            pass.backward_in_stages(visit).unwrap();
        }
        trainer.optimizer.finish_update().unwrap();
        if peers.size() == 1 {
            assert_eq!(held(), of_all_layers);
            continue;
        }

        let own = held();
        assert_eq!(held_by(stored), own);
        assert!(between.iter().all(|bytes| *bytes == own), "{own}, {between:?}");
        assert!(within.iter().all(|bytes| (own..=own + layer).contains(bytes)), "{own}, {layer}, {within:?}");
        assert!(own <= all / peers.size() * 11 / 10, "{own} of {all}");
        let of_ranks = peers.gather(&own.to_le_bytes()).unwrap();
        let sum: usize = of_ranks.iter().map(|own| usize::from_le_bytes(own.as_slice().try_into().unwrap())).sum();
        assert_eq!(sum, of_all_layers);
        // A rank has gradients of a part that is not its own only while the part computes. The exception is the
        // embedding, which is the head too.
        let owned = with_gradient(&trainer.optimizer);
        for (stage, name) in gradients {
            let may_be = owned.contains(&name) || [stage, Stage::Embedding].contains(&Stage::of(&name));
            assert!(may_be, "the gradient of {name} after {stage:?}");
        }
        trainer.finish(0.0, 0.1).unwrap();
        assert_eq!(held(), of_all_layers, "rollout follows");
        let weights = bits(&model);
        assert!(peers.gather(&weights).unwrap().iter().all(|other| *other == weights), "ranks have other weights");
    }
}

/// The most that the fullest rank holds in an update of two micro-batches, against the prediction.
fn memory(peers: &Peers) {
    let sizes = |config: &gavel_policy::ModelConfig| gavel_policy::ModelConfig {
        vocab_size: 300,
        hidden_size: 64,
        intermediate_size: 160,
        num_hidden_layers: 6,
        head_dim: 32,
        ..config.clone()
    };
    let config = sizes(tiny(1).config());
    let plain = [true, false].map(|tied| (tied, OptimizerKind::Adamw));
    let others = [OptimizerKind::Adamw8Bit, OptimizerKind::Muon].map(|kind| (true, kind));
    for (tie_word_embeddings, optimizer) in plain.into_iter().chain(others) {
        let config = gavel_policy::ModelConfig { tie_word_embeddings, ..config.clone() };
        let bare = OptimizerConfig { kind: optimizer, ..BARE };
        let mut summed_whole = 0;
        for (kind, by_layer) in [Kind::Float, Kind::BFloat16].into_iter().flat_map(|kind| [(kind, false), (kind, true)])
        {
            let model = Model::random(config.clone(), 1, Device::Cpu).unwrap().to_kind(kind).unwrap();
            let parameters = if by_layer { Parameters::ByLayer } else { Parameters::Whole };
            let mut trainer = Trainer::with_peers(&model, bare, 24, peers.clone(), parameters).unwrap();
            let packed = Packed::new(&[PackedRow { after: None, tokens: tokens(1, 5) }], Device::Cpu).unwrap();
            let mut most = [0; 3];
            let mut note = |optimizer: &Optimizer| most = std::array::from_fn(|at| most[at].max(held(optimizer)[at]));
            let _ = peers.take_cost();
            trainer.optimizer.begin_update(2).unwrap();
            for last in [false, true] {
                let pass = TrainingPass::in_stages(&model, &packed, true, |moment| {
                    trainer.optimizer.forward(moment)?;
                    note(&trainer.optimizer);
                    Ok::<(), TrainError>(())
                });
                let pass = pass.unwrap();
                model.logits(pass.hidden()).unwrap().square().sum(Kind::Double).backward();
                let visit = |moment| {
                    note(&trainer.optimizer);
                    trainer.optimizer.backward(moment, last)?;
                    note(&trainer.optimizer);
                    Ok::<(), TrainError>(())
                };
                pass.backward_in_stages(visit).unwrap();
            }
            trainer.optimizer.finish_update().unwrap();
            trainer.finish(0.0, 0.1).unwrap();
            let [weights, _, _] = held(&trainer.optimizer);
            // Once an update, or once a micro-batch.
            let summed = peers.take_cost().reduce_bytes;
            assert!(!by_layer || summed == 2 * summed_whole, "{summed} bytes, not twice {summed_whole}");
            summed_whole = summed;

            let of_ranks = peers.gather(&most.map(|bytes| bytes.to_le_bytes()).concat()).unwrap();
            let number = |of_rank: &Vec<u8>, at: usize| {
                u64::from_le_bytes(of_rank[8 * at..8 * (at + 1)].try_into().unwrap()) as f64
            };
            let measured: [f64; 3] =
                std::array::from_fn(|at| of_ranks.iter().map(|of_rank| number(of_rank, at)).fold(0.0, f64::max));
            let shared = SharedBy { ranks: peers.size(), by_layer };
            let model = Footprint::new(&config, kind, Device::Cpu);
            let footprint = TrainingFootprint { model, ranks: shared, optimizer };
            assert_eq!(weights as u64, footprint.model.weights(), "between updates");
            let predicted = [footprint.weights_in_update(), footprint.optimizer(), footprint.gradients()];
            let what = format!("{kind:?}, {optimizer:?}, {shared:?}: {measured:?}, predicted {predicted:?}");
            println!("tied {tie_word_embeddings}, {what}");
            // Beside the gradients that are there: the gradients of the largest matrix as they are computed or sent.
            let passing = 4.0 * 64.0 * 320.0;
            for (measured, (predicted, more)) in measured.iter().zip(predicted.into_iter().zip([0.0, 0.0, passing])) {
                let predicted = predicted as f64;
                assert!(*measured <= predicted && predicted <= measured * 1.1 + more, "{what}");
            }
            assert_eq!(measured[1], predicted[1] as f64, "{what}");
        }
    }
}
