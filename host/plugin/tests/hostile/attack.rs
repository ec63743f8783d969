//! An attack from `tests/hostile/<name>/expect.toml`, and the check of its
//! outcome.

use crate::ground::Ground;
use bytesize::ByteSize;
use gavel_data::{Blame, Budget, Evaluation, Outcome, OutcomeKind, Sample};
use gavel_plugin::advantage::{Batch, FinishReason, Group, ScoredSample, Trajectory};
use gavel_plugin::sampler::{Dataset, EndedGroup, EndedSample, Request, SampleOutcome, Task};
use gavel_plugin::{Decision, Grants, Limits, LoadError, Plugin, PluginSpec};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest text that the host may keep of a guest: 4 KiB of the guest's own,
/// and the host's words around it.
const LONGEST_TEXT: usize = 4096 + 512;

pub struct Attack {
    pub name: String,
    component: PathBuf,
    expect: Expect,
    pub sample: Arc<Sample>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    /// The attack whose component this one uses; its own by default.
    guest: Option<String>,
    load: Option<Refusal>,
    outcome: Option<Expected>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    grant: Grants,
    #[serde(default)]
    limits: Overrides,
    #[serde(default)]
    sample: SampleForm,
}

/// The error that loading must end with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    /// A variant of [`LoadError`] in kebab case.
    error: String,
    /// A part of its message.
    message: Option<String>,
}

/// The outcome that a call must have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: OutcomeKind,
    budget: Option<Budget>,
    whose: Option<Blame>,
    score: Option<f64>,
    /// A part of the reason.
    reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Overrides {
    #[serde(default, with = "humantime_serde")]
    deadline: Option<Duration>,
    #[serde(default, with = "humantime_serde")]
    cpu: Option<Duration>,
    memory: Option<ByteSize>,
    log: Option<ByteSize>,
    handles: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct SampleForm {
    /// The length of the response.
    response: Option<ByteSize>,
    /// The length of the attachment of its prompt.
    attachment: Option<ByteSize>,
}

impl Attack {
    /// All attacks, by name.
    pub fn all(ground: &Ground) -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = std::fs::read_dir(root.join("tests/hostile")).unwrap().map(|entry| entry.unwrap().path());
        let mut attacks: Vec<Self> = folders
            .filter(|path| path.is_dir() && !path.ends_with("src") && !path.ends_with(".cargo"))
            .map(|folder| Self::read(&folder, &root.join("target/hostile"), ground))
            .collect();
        attacks.sort_by(|a, b| a.name.cmp(&b.name));
        attacks
    }

    fn read(folder: &Path, built: &Path, ground: &Ground) -> Self {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(folder.join("expect.toml"))
            .unwrap_or_else(|error| panic!("the attack {name} has no expect.toml: {error}"));
        let text = text.replace("FOLDER", ground.granted().to_str().unwrap());
        let expect: Expect = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}/expect.toml: {error}"));
        assert!(expect.load.is_some() != expect.outcome.is_some(), "{name} needs one of [load] and [outcome]");
        let component = built.join(format!("{}.wasm", expect.guest.as_ref().unwrap_or(&name)));
        assert!(component.exists(), "{} is missing: run `cargo xtask plugins`", component.display());
        let bytes = |size: ByteSize| size.as_u64() as usize;
        let response = expect.sample.response.map_or("Answer: 1 3".to_owned(), |size| "x".repeat(bytes(size)));
        let sample = ground.sample_with(&response, expect.sample.attachment.map_or(4, bytes));
        Self { name, component, expect, sample }
    }

    pub fn spec(&self) -> PluginSpec {
        let given = &self.expect.limits;
        let bytes = |size: Option<ByteSize>, usual: usize| size.map_or(usual, |size| size.as_u64() as usize);
        let usual = Limits::default();
        let limits = Limits {
            // Long enough that among a thousand other calls, only an attack on the deadline reaches it.
            deadline: given.deadline.unwrap_or(Duration::from_secs(60)),
            cpu: given.cpu.unwrap_or(usual.cpu),
            memory: bytes(given.memory, 64 << 20),
            log: bytes(given.log, usual.log),
            handles: given.handles.unwrap_or(usual.handles),
            ..usual
        };
        PluginSpec {
            name: self.name.clone(),
            path: self.component.clone(),
            params: self.expect.params.clone(),
            limits,
            grants: self.expect.grant.clone(),
            reuse: None,
        }
    }

    /// Whether this attack is on a call, not on loading.
    pub fn loads(&self) -> bool {
        self.expect.load.is_none()
    }

    /// Runs the attack on its sample; a judger on a group of two, and an advantage or a sampler on two such groups.
    pub async fn call(&self, plugin: &Plugin, seed: u64) -> Evaluation {
        if plugin.is_advantage() {
            return decided(plugin.estimate_call(batch().into(), seed).await, "it gave advantages");
        }
        if plugin.is_sampler() {
            return decided(plugin.sample_call(request(seed).into()).await, "it drew tasks");
        }
        match plugin.is_judger() {
            false => plugin.score(&self.sample, seed).await,
            true => {
                let group = [self.sample.clone(), self.sample.clone()];
                let [first, second] = plugin.judge(&group, seed).await.try_into().expect("two evaluations");
                assert_eq!(first.outcome, second.outcome, "{}", self.name);
                first
            }
        }
    }

    /// Compares the result of loading with the expected one.
    pub fn check_load(&self, error: Option<&LoadError>) -> Result<(), String> {
        match (&self.expect.load, error) {
            (None, None) => Ok(()),
            (None, Some(error)) => Err(format!("{}: does not load: {error}", self.name)),
            (Some(refusal), None) => Err(format!("{}: loads, which must give {}", self.name, refusal.error)),
            (Some(refusal), Some(error)) => {
                let text = error.to_string();
                let said = refusal.message.as_ref().is_none_or(|message| text.contains(message));
                if variant(error) == refusal.error && said && text.len() <= LONGEST_TEXT {
                    return Ok(());
                }
                Err(format!("{}: loading gives {} ({} bytes): {text:.300}", self.name, variant(error), text.len()))
            }
        }
    }

    /// Compares the result of a call with the expected one.
    pub fn check(&self, evaluation: &Evaluation) -> Result<(), String> {
        let Some(expected) = &self.expect.outcome else { return Ok(()) };
        let outcome = &evaluation.outcome;
        let reason = outcome.reason().unwrap_or_default();
        let budget = match outcome {
            Outcome::OutOfBudget { which, .. } => Some(*which),
            _ => None,
        };
        let whose = match outcome {
            Outcome::Fault { whose, .. } => Some(*whose),
            _ => None,
        };
        // Bit by bit: -0.0 is not 0.0 here.
        let same_score = expected.score.is_none_or(|score| outcome.score().map(f64::to_bits) == Some(score.to_bits()));
        let holds = outcome.kind() == expected.kind
            && budget == expected.budget
            && whose == expected.whose
            && same_score
            && expected.reason.as_ref().is_none_or(|part| reason.contains(part))
            && reason.len() <= LONGEST_TEXT
            && evaluation.usage.peak_memory <= self.spec().limits.memory as u64;
        if holds {
            return Ok(());
        }
        let score = outcome.score();
        let usage = evaluation.usage;
        Err(format!(
            "{}: {:?} {budget:?} {whose:?} {score:?} {usage:?} ({} bytes of reason): {reason:.300}",
            self.name,
            outcome.kind(),
            reason.len()
        ))
    }
}

/// The outcome of a call for a decision; with an answer, it abstained with this text.
fn decided<T>(Decision { answer, usage, diagnosis }: Decision<T>, with_answer: &str) -> Evaluation {
    let outcome = answer.err().unwrap_or(Outcome::Abstained(with_answer.into()));
    Evaluation { usage, diagnosis, ..Evaluation::without_call(outcome) }
}

/// A request for three tasks of a dataset of four rows, after two groups of two samples.
fn request(seed: u64) -> Request {
    let sample = |reward| EndedSample { outcome: SampleOutcome::Scored, reward: Some(reward), metrics: Vec::new() };
    let ended = |draw| EndedGroup {
        draw,
        task: Task { dataset: 0, row: draw },
        task_id: "t".into(),
        data_source: None,
        version: 0,
        samples: vec![sample(0.0), sample(1.0)],
        dropped: None,
    };
    let datasets = vec![Dataset { rows: 4, weight: None }];
    Request { step: 1, seed, datasets, ended: vec![ended(0), ended(1)], wanted: 3, next_draw: 2, state: Vec::new() }
}

/// Two groups of two samples, each with two trajectories of three tokens.
fn batch() -> Batch {
    let trajectory = |index| Trajectory {
        index,
        finish_reason: FinishReason::Stop,
        prompt_tokens: 2,
        response_tokens: 3,
        learned: Vec::new(),
        credit: Vec::new(),
        penalty: 0.0,
        logprob: -1.0,
        oldest_version: Some(0),
        newest_version: Some(0),
    };
    let sample = |index| {
        let trajectories = vec![trajectory(0), trajectory(1)];
        ScoredSample { index, reward: f64::from(index), parts: Vec::new(), trajectories }
    };
    let samples = vec![sample(0), sample(1)];
    let group = Group { task_id: "t".into(), data_source: None, speaker: String::new(), samples };
    Batch { step: 1, groups: vec![group.clone(), group], state: Vec::new() }
}

/// The name of an error's variant, in kebab case.
fn variant(error: &LoadError) -> String {
    let debug = format!("{error:?}");
    let name: String = debug.chars().take_while(|c| c.is_alphanumeric()).collect();
    let mut kebab = String::new();
    for (index, letter) in name.char_indices() {
        if letter.is_uppercase() && index > 0 {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}
