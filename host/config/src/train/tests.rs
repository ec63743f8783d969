use super::*;
use gavel_train::{AdjustLr, MuonConfig, OptimizerConfig, OptimizerKind, RolloutIs, RolloutRs};

/// A `[train]` table with these keys beside those that must be there.
fn rl_table(text: &str) -> RlTable {
    toml::from_str(&format!("steps = 1\nprompts_per_step = 1\nlearning_rate = 1e-3\n{text}")).unwrap()
}

fn completed(text: &str, max_staleness: u64) -> RlTable {
    let mut table = rl_table(text);
    table.complete(max_staleness);
    assert!(table.validate().is_ok(), "{text}");
    table
}

#[test]
fn a_run_that_is_on_policy_corrects_nothing() {
    for text in ["", "loss.old_logprobs = 'current'", "loss.old_logprobs = 'proximal'"] {
        let (table, written) = (completed(text, 0), rl_table(text));
        assert_eq!((table.off_policy, table.loss), (None, written.loss));
    }
    assert!(!completed("", 0).loss().needs_proximal());
    assert!(completed("loss.old_logprobs = 'proximal'", 0).loss().needs_proximal());
}

#[test]
fn the_length_of_a_run_is_a_number_of_steps_or_of_epochs() {
    let table = |text: &str| -> SftTable { toml::from_str(&format!("learning_rate = 1e-3\n{text}")).unwrap() };
    let steps = |text: &str, rows: usize| {
        let table = table(text);
        table.validate().unwrap();
        table.learning(rows).steps
    };
    assert_eq!(steps("batch_size = 8\nsteps = 3", 100), 3);
    // The last step of an uneven number of rows begins another epoch.
    assert_eq!([40, 41].map(|rows| steps("batch_size = 8\nepochs = 2", rows)), [10, 11]);
    for (text, says) in [
        ("batch_size = 8", "train.steps is missing\nhint: or set train.epochs"),
        ("batch_size = 8\nsteps = 3\nepochs = 2", "train.steps and train.epochs are two lengths of one run"),
        ("batch_size = 8\nepochs = 0", "train.epochs must be at least 1, not 0"),
        ("batch_size = 8\nsteps = 0", "train.steps must be at least 1, not 0"),
        ("batch_size = 0\nepochs = 2", "train.batch_size must be at least 1, not 0"),
    ] {
        let error = table(text).validate().unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

#[test]
fn a_teacher_is_another_model_and_filters_nothing() {
    let error = |text: &str| {
        let mut table = rl_table(text);
        table.complete(0);
        table.validate().err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(error("algorithm = 'distillation'\nreference.path = 'teacher'"), "");
    let kl = KlConfig { estimator: KlEstimator::K1, coefficient: 1.0, ..KlConfig::default() };
    assert_eq!(completed("algorithm = 'distillation'\nreference.path = 'teacher'", 0).kl_reward, Some(kl));
    for (text, says) in [
        ("algorithm = 'distillation'", "train.algorithm = \"distillation\" needs a teacher"),
        ("algorithm = 'distillation'\nreference.every = 2", "train.algorithm = \"distillation\" needs a teacher"),
        (
            "algorithm = 'distillation'\nreference.path = 'teacher'\nloss.distillation.coefficient = 0",
            "train.loss.distillation.coefficient: with 0, nothing is learned",
        ),
        (
            "algorithm = 'distillation'\nreference.path = 'teacher'\nfilter_groups = {}",
            "train.filter_groups drops groups by their rewards",
        ),
        ("reference.path = 'teacher'", "train.reference: nothing measures the distance from it"),
        ("kl_reward = {}\nreference = {}", "train.reference: it is empty"),
        ("kl_reward = {}\nreference = { path = 'a', every = 2 }", "train.reference: every is for a reference that"),
        ("kl_reward = {}\nreference = { path = 'a', chat = 'b' }", "train.reference: path and chat name two models"),
        ("loss.kl = {}\nreference.chat = 'a'", "train.reference.chat: train.loss.kl needs the reference"),
        ("kl_reward = {}\nreference = { path = 'a', mixup = 0.5 }", "train.reference: mixup is for a reference"),
        ("kl_reward = {}\nreference.every = 0", "train.reference.every must be at least 1, not 0"),
        (
            "kl_reward = {}\nreference = { chat = 'a', by_source = { b = 'c' } }",
            "train.reference: chat and by_source name",
        ),
        (
            "loss.kl = {}\nreference.by_source = { a = 'b' }",
            "train.reference.by_source: train.loss.kl has one reference",
        ),
        ("loss.distillation = {}\nreference.chat = 'a'", "train.reference.chat: train.loss.distillation needs the"),
        (
            "loss.distillation = {}\noff_policy.sampling_mask = true",
            "train.off_policy.sampling_mask: train.loss.distillation compares the whole",
        ),
        ("loss.distillation.beta = -0.1", "train.loss.distillation.beta must be from 0 to 1, not -0.1"),
        ("loss.distillation.top_k = 0", "train.loss.distillation.top_k must be at least 1, not 0"),
        ("loss.distillation.coefficient = -1.0", "train.loss.distillation.coefficient must be a number of at least 0"),
        ("advantage.threshold = 1.0", "train.advantage.threshold must be absent: it is for raft"),
    ] {
        let found = error(text);
        assert!(found.starts_with(says), "{text}: {found}");
    }
    // The distance from whole distributions is in the loss, and not in the reward too.
    let whole = completed("algorithm = 'distillation'\nreference.path = 'teacher'\nloss.distillation = {}", 0);
    assert_eq!((whole.kl_reward, whole.distils(), whole.needs_reference()), (None, true, true));
    // A threshold compares no samples.
    assert_eq!(
        (
            completed("algorithm = 'raft'", 0).min_scored(),
            completed("algorithm = 'raft'\nadvantage.threshold = 1.0", 0).min_scored()
        ),
        (2, 1)
    );
}

#[test]
fn a_critic_is_for_gae_and_there_by_itself() {
    let plain = CriticTable { optimizer: OptimizerConfig::default().into(), ..CriticTable::default() };
    assert_eq!(completed("algorithm = 'gae'", 0).critic, Some(plain));
    assert_eq!(completed("", 0).critic, None);
    let error = |text: &str| {
        let mut table = rl_table(text);
        table.complete(0);
        table.validate().unwrap_err().to_string()
    };
    assert!(error("critic = {}").starts_with("train.critic: only train.algorithm = \"gae\" has a critic"));
    for (critic, says) in [
        (
            "steps_alone = 1",
            "train.critic.steps_alone must be below the steps of the run (1): the policy would learn nothing, not 1",
        ),
        ("cliprange_value = 0.0", "train.critic.cliprange_value must be a number above 0, not 0"),
        ("learning_rate = -1.0", "train.critic.learning_rate must be"),
        ("optimizer.eps = -1.0", "train.critic.optimizer.eps must be"),
        (
            "optimizer.muon.momentum = 0.9",
            "train.critic.optimizer.kind must be `muon` beside a table `muon`, not `adamw`",
        ),
    ] {
        let found = error(&format!("algorithm = 'gae'\ncritic = {{ {critic} }}"));
        assert!(found.starts_with(says), "{found}");
    }
}

#[test]
fn a_critic_has_the_optimiser_of_the_policy_but_for_the_keys_of_its_own() {
    let optimizer = |text: &str| {
        let table = completed(&format!("algorithm = 'gae'\n{text}"), 0);
        let written: toml::Table = toml::to_string(&table).unwrap().parse().unwrap();
        // The file of a run has all of them.
        let optimizer: OptimizerConfig = written["critic"]["optimizer"].clone().try_into().unwrap();
        assert_eq!(table.critic.unwrap().optimizer, optimizer.into(), "{text}");
        optimizer
    };
    let policy = OptimizerConfig { betas: [0.8, 0.9], max_grad_norm: 0.25, ..OptimizerConfig::default() };
    let text = "optimizer = { betas = [0.8, 0.9], max_grad_norm = 0.25 }";
    assert_eq!(optimizer(text), policy);
    let own = OptimizerConfig { max_grad_norm: 2.0, weight_decay: 0.0, ..policy };
    assert_eq!(optimizer(&format!("{text}\ncritic.optimizer = {{ max_grad_norm = 2.0, weight_decay = 0.0 }}")), own);
    assert_eq!(optimizer("critic.optimizer.eps = 1e-6"), OptimizerConfig { eps: 1e-6, ..OptimizerConfig::default() });
    let muon = "optimizer = { kind = 'muon', muon = { momentum = 0.9, adjust_lr = 'original' } }";
    let settings = MuonConfig { momentum: 0.9, adjust_lr: AdjustLr::Original, ..MuonConfig::default() };
    let with_muon = OptimizerConfig { kind: OptimizerKind::Muon, muon: Some(settings), ..OptimizerConfig::default() };
    assert_eq!(optimizer(muon), with_muon);
    let own = OptimizerConfig { muon: Some(MuonConfig { ns_steps: 3, ..settings }), ..with_muon };
    assert_eq!(optimizer(&format!("{muon}\ncritic.optimizer.muon.ns_steps = 3")), own);
    let own = OptimizerConfig { kind: OptimizerKind::Adamw8Bit, ..OptimizerConfig::default() };
    assert_eq!(optimizer(&format!("{muon}\ncritic.optimizer.kind = 'adamw_8bit'")), own);
}

#[test]
fn every_outcome_and_the_mini_batch_are_written_out() {
    let table = completed("on_outcome = { fault = { score = -1.0 } }", 0);
    let written: toml::Table = toml::to_string(&table).unwrap().parse().unwrap();
    assert_eq!(written["mini_batch_prompts"].as_integer(), Some(1));
    let expected: toml::Table = "out-of-budget = 'lowest-if-caused'\nabstained = 'drop'\nunavailable = 'drop'\n\
                                 fault = { score = -1.0 }"
        .parse()
        .unwrap();
    assert_eq!(written["on_outcome"].as_table(), Some(&expected));
}

#[test]
fn a_run_that_is_off_policy_has_a_default_that_is_written_out() {
    let of = |text: &str, max_staleness| {
        let table = completed(text, max_staleness);
        (table.loss.old_logprobs(), table.correction().unwrap())
    };
    let (old, off_policy) = of("", 4);
    assert_eq!((old, off_policy), (OldLogProbs::Proximal, OffPolicyConfig::default()));
    assert_eq!((off_policy.rollout_is, off_policy.rollout_is_threshold), (RolloutIs::Token, 2.0));
    // The table alone asks for it, too.
    assert_eq!(of("off_policy = {}", 0), (old, off_policy));
    let (old, off_policy) = of("loss.old_logprobs = 'rollout'", 4);
    assert_eq!(
        (old, off_policy.rollout_is, off_policy.rollout_rs),
        (OldLogProbs::Rollout, RolloutIs::None, RolloutRs::None)
    );
    assert!(!completed("loss.old_logprobs = 'rollout'", 4).loss().needs_proximal());
    let (_, off_policy) = of("off_policy.rollout_rs = 'geometric'", 4);
    assert_eq!(off_policy.rollout_rs_threshold, Some(1.01));

    let written = toml::to_string(&completed("off_policy.rollout_rs = 'token'", 1)).unwrap();
    assert_eq!(toml::from_str::<RlTable>(&written).unwrap(), completed("off_policy.rollout_rs = 'token'", 1));
}

#[test]
fn a_plugin_takes_the_place_of_an_algorithm() {
    let table = completed("advantage = 'plugin:own'", 0);
    assert_eq!((table.advantage(), table.algorithm, table.min_scored()), (Some("own"), None, 1));
    assert_eq!(completed("", 0).algorithm, Some(Estimator::Grpo));
    let mut both = rl_table("algorithm = 'rloo'\nadvantage = 'plugin:own'");
    both.complete(0);
    let error = both.validate().unwrap_err().to_string();
    assert!(error.starts_with("train.algorithm: train.advantage names a plugin"), "{error}");
}

/// A table of `gavel train` whose rollout has these keys.
fn following(text: &str, rollout: &str, max_staleness: u64) -> (RlTable, RolloutTable) {
    let (mut table, rollout) = (rl_table(text), toml::from_str(&format!("max_tokens = 8\n{rollout}")).unwrap());
    table.complete(max_staleness);
    table.follow_rollout(&rollout);
    (table, rollout)
}

#[test]
fn masks_are_recorded_where_rollout_changes_the_distribution() {
    let masks = |text: &str, rollout: &str| {
        let (table, rollout) = following(text, rollout, 0);
        table.validate().unwrap();
        let written = toml::to_string(&table).unwrap();
        assert_eq!(toml::from_str::<RlTable>(&written).unwrap().off_policy, table.off_policy, "{written}");
        (table.off_policy.and_then(|table| table.sampling_mask), table.records_masks(&rollout))
    };
    for rollout in ["top_k = 5", "top_p = 0.9", "min_p = 0.1", "repetition_penalty = 1.1", "logit_bias = { 3 = -1.0 }"]
    {
        assert_eq!(masks("", rollout), (Some(true), true), "{rollout}");
        assert_eq!(masks("off_policy.sampling_mask = true", rollout), (Some(true), true), "{rollout}");
        assert_eq!(masks("off_policy.sampling_mask = false", rollout), (Some(false), false), "{rollout}");
        // The mask alone asks for no correction, and no other forward pass.
        let (table, _) = following("", rollout, 0);
        assert_eq!((table.correction(), table.loss), (None, rl_table("").loss));
        let (table, _) = following("", rollout, 2);
        let correction = Some(OffPolicyConfig::default());
        assert_eq!(table.off_policy, Some(OffPolicyTable { sampling_mask: Some(true), correction }));
    }
    for rollout in ["", "temperature = 0.7", "top_p = 1.0", "stop_token_ids = [3]", "logit_bias = { 3 = 0.0 }"] {
        assert_eq!(masks("", rollout), (None, false), "{rollout}");
        assert_eq!(masks("off_policy.sampling_mask = true", rollout), (Some(true), false), "{rollout}");
    }
}

#[test]
fn masks_are_refused_where_a_teacher_is_compared_over_all_tokens() {
    for (text, says) in [
        (
            "algorithm = 'distillation'\nreference.path = 'teacher'",
            "train.algorithm = \"distillation\" compares the whole",
        ),
        ("kl_reward = {}\nreference.chat = 'judge'", "train.reference.chat: a server reports no log-probabilities"),
    ] {
        let (table, rollout) = following(text, "top_p = 0.9", 0);
        table.validate().unwrap();
        assert!(!table.records_masks(&rollout));
        let (table, _) = following(&format!("{text}\noff_policy.sampling_mask = true"), "top_p = 0.9", 0);
        let error = table.validate().unwrap_err().to_string();
        assert!(error.starts_with(&format!("train.off_policy.sampling_mask: {says}")), "{error}");
    }
}

#[test]
fn a_row_is_compared_with_the_reference_of_its_data_source() {
    let text = "algorithm = 'distillation'\nreference.by_source = { maths = 'b', code = 'a', proofs = 'b' }";
    let table = completed(text, 0);
    let numbers = ["code", "maths", "proofs", "prose"].map(|source| table.reference_of(Some(source)));
    assert_eq!((numbers, table.reference_of(None)), ([1, 2, 2, 0], 0));
    let reference = table.reference.as_ref().unwrap();
    assert_eq!(reference.of_sources().into_iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(!reference.is_for_all());
    assert!(completed(&format!("{text}\nreference.path = 'c'"), 0).reference.unwrap().is_for_all());
    assert_eq!(completed("kl_reward = {}\nreference.path = 'c'", 0).reference_of(Some("code")), 0);
}
