use super::*;
use crate::rl::advantages::AdvantageRule;
use crate::rl::learning_state::LearningState;
use crate::run::Measures;
use crate::run::token_measures::TokenMeasures;
use crate::testing::group;
use gavel_config::{Config, RlTable};
use gavel_data::seed::uniform;
use gavel_data::{Credit, Evaluation, FinishReason, Opening, Outcome, OutcomeKind, Score, Tokens};
use gavel_plugin::{PluginSpec, Sandbox, SandboxConfig};
use gavel_text::TextModel;
use gavel_train::Experience;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

/// A run with two rewards that count, and one that is only recorded.
fn config(train: &str, agent: &str) -> Config<RlTable> {
    let text = format!(
        "model.path = 'm'\ndata.train = 't'\nrollout.max_tokens = 1\n\
         reward = [{{ name = 'b', path = 'b', weight = 2.0 }}, {{ name = 'a', path = 'a', weight = 0.5 }}, \
         {{ name = 'seen', path = 'c', weight = 0.0 }}]\n{agent}\n\
         [train]\nsteps = 1\nprompts_per_step = 1\nlearning_rate = 1e-3\n{train}"
    );
    toml::from_str(&text).unwrap()
}

/// Numbers that follow from a seed.
struct Random(u64, u64);

impl Random {
    fn share(&mut self) -> f64 {
        self.1 += 1;
        uniform(self.0, self.1)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.share() * most as f64) as usize
    }
}

/// A group with random scores, lengths and masks; some samples have no reward, and some rewards did not answer.
fn random_group(random: &mut Random) -> Group {
    let samples = 1 + random.below(6);
    let outcomes: Vec<_> = (0..samples).map(|_| (OutcomeKind::Scored, None)).collect();
    let mut group = group(&outcomes);
    // Equal scores are frequent, as they are in runs.
    let scores = [0.0, 1.0, 0.1, random.share()];
    for member in &mut group.members {
        let [a, b, seen] = [0; 3].map(|_| scores[random.below(4)]);
        for (name, value) in [("a", a), ("b", b), ("seen", seen)] {
            let score = Score { value, metrics: vec![Metric { name: "m".into(), value }], ..Score::default() };
            member.outcome.plugins.insert(name.into(), Evaluation::without_call(Outcome::Scored(score)));
        }
        member.outcome.reward = (random.below(8) > 0).then_some(2.0 * b + 0.5 * a);
        if random.below(8) == 0 {
            member.outcome.plugins.remove("a");
            member.outcome.reward = Some(random.share());
        }
        let trajectory = member.sample.trajectories.remove(0);
        let speakers = ["left", "right"];
        member.sample.trajectories = (0..1 + random.below(2))
            .map(|number| {
                let tokens = 1 + random.below(5);
                let known = Tokens {
                    prompt: vec![1; 1 + number],
                    response: vec![5; tokens],
                    loss_mask: (0..tokens).map(|_| random.below(3) > 0).collect(),
                    logprobs: (0..tokens).map(|_| -random.share() as f32).collect(),
                    versions: (0..tokens).map(|_| random.below(4) as u64).collect(),
                    masks: Default::default(),
                };
                let opening = Some(Opening { speaker: speakers[number].into(), messages: Vec::new() });
                Trajectory { tokens: Some(known.into()), opening, ..trajectory.clone() }
            })
            .collect();
    }
    group
}

/// Penalties of the tokens of groups.
fn random_measures(groups: &[Group], random: &mut Random) -> Measures {
    let mut measures = Measures::new();
    for (number, group) in groups.iter().enumerate() {
        for (index, member) in group.members.iter().enumerate() {
            for (at, trajectory) in member.sample.trajectories.iter().enumerate() {
                let tokens = trajectory.tokens().unwrap().response.len();
                let kl = (0..tokens).map(|_| random.share()).collect();
                measures.insert((number, index, at), TokenMeasures { kl, ..TokenMeasures::default() });
            }
        }
    }
    measures
}

/// A sandbox, and the guest that repeats this algorithm.
fn guest(estimator: &str) -> (Sandbox, Plugin) {
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN)).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests/estimators.wasm");
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    let mut spec = PluginSpec::new("own", path);
    // The limits of honest calls on a busy machine.
    spec.limits.cpu = std::time::Duration::from_secs(60);
    spec.limits.deadline = std::time::Duration::from_secs(120);
    spec.params.insert("estimator".into(), estimator.into());
    let plugin = sandbox.handle().block_on(Plugin::load_advantage(&sandbox, spec)).unwrap();
    (sandbox, plugin)
}

/// The experiences that a plugin gives, or the built-in algorithm of the run.
fn experiences(
    config: &Config<RlTable>,
    groups: &[Group],
    measures: &Measures,
    plugin: Option<&(Sandbox, Plugin)>,
) -> Vec<Vec<Experience>> {
    let text = TextModel::byte_level();
    let credit = CreditRule::new(config, &text);
    let mut learning = LearningState::new(&config.train, &BTreeMap::new(), &[]);
    let mut rule = AdvantageRule {
        table: &config.train,
        credit: &credit,
        learning: &mut learning,
        measures: measures.clone(),
        greedy: Vec::new(),
    };
    let mut groups = groups.to_vec();
    let mut groups: Vec<&mut Group> = groups.iter_mut().collect();
    let compared = rule.compare(&groups);
    let estimated = match plugin {
        None => rule.estimate(&compared),
        Some((sandbox, plugin)) => {
            let batch = Batch {
                step: 1,
                groups: super::groups(&groups, &compared, &credit, &config.train.grouping()),
                state: Vec::new(),
            };
            let ranks = Ranks::alone();
            let asked = estimate(plugin, batch, &compared.scored, &ranks, 0);
            sandbox.handle().block_on(asked).unwrap().0
        }
    };
    rule.experiences(&mut groups, &compared, estimated)
}

/// Numbers of experiences, bit by bit.
fn bits(experiences: &[Vec<Experience>]) -> Vec<Vec<Vec<u32>>> {
    let of_row = |row: &Experience| row.advantages.iter().map(|advantage| advantage.to_bits()).collect();
    experiences.iter().map(|rows| rows.iter().map(of_row).collect()).collect()
}

#[test]
fn a_plugin_that_repeats_an_algorithm_gives_the_same_bits() {
    for estimator in ["grpo", "rloo", "gdpo"] {
        let guest = guest(estimator);
        for case in 0..40 {
            let mut random = Random(case, 0);
            let groups: Vec<Group> = (0..1 + random.below(4)).map(|_| random_group(&mut random)).collect();
            let measures = random_measures(&groups, &mut random);
            let keys = ["min_scored = 2", "min_scored = 2\nkl_reward.coefficient = 0.25"][case as usize % 2];
            // A speaker's reward is one number, of which `gdpo` leaves no penalty out.
            let by_agent = case % 4 == 2;
            let agent = if by_agent { "agent.reward_to = 'by-agent'" } else { "" };
            let built_in = config(&format!("algorithm = '{estimator}'\n{keys}"), agent);
            let own = config(&format!("advantage = 'plugin:own'\n{keys}"), agent);
            let expected = experiences(&built_in, &groups, &measures, None);
            let found = experiences(&own, &groups, &measures, Some(&guest));
            assert_eq!(bits(&found), bits(&expected), "{estimator}, case {case}");
        }
    }
}

#[test]
fn a_plugin_sees_the_numbers_of_a_sample() {
    let config = config("advantage = 'plugin:own'\nkl_reward.coefficient = 0.5", "");
    let text = TextModel::byte_level();
    let credit = CreditRule::new(&config, &text);
    let mut group = group(&[(OutcomeKind::Scored, Some(3.0)), (OutcomeKind::Fault, None)]);
    let member = &mut group.members[0];
    let written = text.tokenizer.encode("ab").unwrap();
    let known = Tokens {
        prompt: vec![1, 1, 1],
        response: [&written[..], &[7], &text.tokenizer.encode("c").unwrap()].concat(),
        loss_mask: vec![true, true, false, true],
        logprobs: vec![-0.5, -0.25, 9.0, -1.0],
        versions: vec![3, 2, 9, 4],
        masks: Default::default(),
    };
    let said = |text: &str| gavel_data::Message::new(gavel_data::Role::Assistant, text);
    let asked = gavel_data::Message::new(gavel_data::Role::User, "?");
    member.sample.trajectories[0].messages = vec![said("ab"), asked, said("c")];
    member.sample.trajectories[0].tokens = Some(known.into());
    member.sample.trajectories[0].finish_reason = FinishReason::Length;
    let given = |start, end| Credit { trajectory: 0, message: 0, start, end, value: 0.25 };
    let score = Score {
        value: 1.0,
        metrics: vec![Metric { name: "m".into(), value: 4.0 }],
        credit: vec![given(1, 2)],
        ..Score::default()
    };
    member.outcome.plugins.insert("b".into(), Evaluation::without_call(Outcome::Scored(score)));
    let failed = Outcome::Unavailable("gone".into());
    member.outcome.plugins.insert("a".into(), Evaluation::without_call(failed));
    let mut learning = LearningState::new(&config.train, &BTreeMap::new(), &[]);
    let kl = TokenMeasures { kl: vec![1.0, 2.0, 100.0, 3.0], ..TokenMeasures::default() };
    let mut rule = AdvantageRule {
        table: &config.train,
        credit: &credit,
        learning: &mut learning,
        measures: Measures::from([((0, 0, 0), kl)]),
        greedy: Vec::new(),
    };
    let groups = [&mut group];
    let compared = rule.compare(&groups);
    let seen = super::groups(&groups, &compared, &credit, &config.train.grouping());
    let [advantage::Group { task_id, data_source, speaker, samples }] = &seen[..] else { panic!("one group") };
    assert_eq!((task_id.as_str(), data_source, speaker.as_str()), ("t", &None, ""));
    let [sample] = &samples[..] else { panic!("one sample has a reward") };
    // Half of 6 is the penalty.
    assert_eq!((sample.index, sample.reward), (0, 0.0));
    let part = |part: &Part| (part.reward.clone(), part.weight, part.score, part.counted, part.metrics.len());
    assert_eq!(
        sample.parts.iter().map(part).collect::<Vec<_>>(),
        // Of the reward 3, 2 is known: `a` has the rest.
        [
            ("a".to_owned(), 0.5, None, 2.0, 0),
            ("b".to_owned(), 2.0, Some(1.0), 1.0, 1),
            ("seen".to_owned(), 0.0, None, 0.0, 0)
        ]
    );
    let [one] = &sample.trajectories[..] else { panic!("one trajectory") };
    assert_eq!((one.index, one.prompt_tokens, one.response_tokens), (0, 3, 4));
    assert!(matches!(one.finish_reason, advantage::FinishReason::Length));
    let spans: Vec<_> = one.learned.iter().map(|span| (span.start, span.end)).collect();
    assert_eq!(spans, [(0, 2), (3, 4)]);
    assert_eq!((one.penalty, one.logprob), (3.0, -1.75));
    assert_eq!((one.oldest_version, one.newest_version), (Some(2), Some(4)));
    let credits: Vec<_> = one.credit.iter().map(|run| (run.tokens.start, run.tokens.end, run.value)).collect();
    assert_eq!(credits, [(1, 2, 0.5)]);
}

#[test]
fn credit_is_added_unless_a_plugin_decides_on_tokens() {
    let config = config("advantage = 'plugin:own'", "");
    let text = TextModel::byte_level();
    let credit = CreditRule::new(&config, &text);
    let mut group = group(&[(OutcomeKind::Scored, Some(1.0))]);
    let member = &mut group.members[0];
    if let Some(gavel_data::KnownTokens::Full(tokens)) = &mut member.sample.trajectories[0].tokens {
        tokens.response = vec![text.tokenizer.encode("a").unwrap()[0], text.tokenizer.stop_ids()[0]];
    }
    let given = Credit { trajectory: 0, message: 0, start: 0, end: 1, value: 0.25 };
    let score = Score { credit: vec![given], ..Score::default() };
    member.outcome.plugins.insert("b".into(), Evaluation::without_call(Outcome::Scored(score)));
    let mut learned = |advantage: Advantage| {
        let mut learning = LearningState::new(&config.train, &BTreeMap::new(), &[]);
        let measures = Measures::new();
        let mut rule = AdvantageRule {
            table: &config.train,
            credit: &credit,
            learning: &mut learning,
            measures,
            greedy: Vec::new(),
        };
        let mut groups = [&mut group];
        let compared = rule.compare(&groups);
        rule.experiences(&mut groups, &compared, vec![vec![advantage]]).remove(0).remove(0).advantages
    };
    assert_eq!(learned(Advantage::Sample(1.0)), [1.5, 1.0]);
    assert_eq!(learned(Advantage::Trajectories(vec![2.0])), [2.5, 2.0]);
    assert_eq!(learned(Advantage::Tokens(vec![vec![3.0, 4.0]])), [3.0, 4.0]);
}

#[test]
fn advantages_are_exchanged_bit_for_bit() {
    let trajectory = |tokens: usize| ScoredTrajectory { loss_mask: vec![true; tokens], ..Default::default() };
    let sample =
        || gavel_train::ScoredSample { trajectories: vec![trajectory(2), trajectory(1)], ..Default::default() };
    let groups = [2, 1].map(|samples| ScoredGroup {
        samples: std::iter::repeat_with(sample).take(samples).collect(),
        greedy_reward: None,
    });
    let advantages = vec![
        vec![Advantage::Sample(0.1), Advantage::Trajectories(vec![-0.0, f64::MIN_POSITIVE])],
        vec![Advantage::Tokens(vec![vec![1.0 / 3.0, 2.0], vec![-1e300]])],
    ];
    for state in [vec![], vec![7, 0, 255]] {
        let own = (advantages.clone(), state);
        let bytes = written(&own);
        let again = read(&bytes, &groups).unwrap();
        assert_eq!((&again, written(&again)), (&own, bytes.clone()));
    }
    let bytes = written(&(advantages, Vec::new()));
    assert_eq!(read(&bytes[..bytes.len() - 1], &groups), None);
    assert_eq!(read(&[3], &groups), None);
}

#[test]
fn credit_is_given_in_runs() {
    let credit = |start, end, value| (start, end, value);
    let found = runs(&[0.0, 0.5, 0.5, -1.0, 0.0, 0.0, 2.0]);
    let found: Vec<_> = found.iter().map(|run| credit(run.tokens.start, run.tokens.end, run.value)).collect();
    assert_eq!(found, [credit(1, 3, 0.5), credit(3, 4, -1.0), credit(6, 7, 2.0)]);
}
