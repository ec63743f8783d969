//! Group relative policy optimisation (DeepSeekMath, <https://arxiv.org/abs/2402.03300>), told once from front to back:
//! groups of responses are drawn, scored by a component in the sandbox, compared with each other and learned from.
//!
//! `cargo run --release -p gavel-train --example grpo -- MODEL REWARD.wasm '{"its": "parameters"}' ROWS.jsonl`
//!
//! This is what `gavel train` does, without what a run needs beyond the algorithm. Here, drawing, scoring and learning
//! wait for each other; a response has one turn, without tools and agents; a sample without a score is left out, and
//! nobody counts it; there is no validation, no metric but the reward, no record, no checkpoint and no other rank.
#![allow(clippy::print_stdout)]

use gavel_data::{Message, Role, RowReader, Sample, Task, Trajectory};
use gavel_plugin::{Plugin, PluginSpec, Sandbox, SandboxConfig};
use gavel_policy::{Device, Engine, EngineConfig, Kind, Model, Request, Sampling};
use gavel_text::TextModel;
use gavel_train::{
    AdvantageConfig, Experience, LossConfig, OptimizerConfig, PolicyUpdate, RewardStatistics, SampleId, ScoredGroup,
    ScoredSample, ScoredTrajectory, Trainer,
};
use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

const PROMPTS_PER_STEP: usize = 4;
const GROUP_SIZE: usize = 8;
const MAX_TOKENS: usize = 32;

/// Trains `model` for `steps` steps. Returns the mean reward of each step.
pub fn train(
    model: &Model,
    text: &TextModel,
    sandbox: &Sandbox,
    reward: &Plugin,
    tasks: &[Arc<Task>],
    steps: u64,
    learning_rate: f64,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut engine = Engine::new(model, EngineConfig::default())?;
    let mut trainer = Trainer::new(model, OptimizerConfig::default(), 8192)?;
    let mut means = Vec::new();
    for step in 0..steps {
        // Draw: each prompt asks for a group of responses, which share its keys and values.
        let tasks: Vec<&Arc<Task>> =
            tasks.iter().cycle().skip(step as usize * PROMPTS_PER_STEP).take(PROMPTS_PER_STEP).collect();
        let prompts: Vec<Vec<u32>> =
            tasks.iter().map(|task| text.prompt_ids(&task.prompt)).collect::<Result<_, _>>()?;
        for id in 0..PROMPTS_PER_STEP * GROUP_SIZE {
            let sampling = Sampling::new(MAX_TOKENS, text.tokenizer.stop_ids().to_vec());
            let seed = step << 32 | id as u64;
            engine.submit(Request::new(id as u64, prompts[id / GROUP_SIZE].clone(), sampling, seed))?;
        }
        let mut responses = Vec::new();
        while !engine.is_idle() {
            responses.extend(engine.step(model)?.finished);
        }
        responses.sort_by_key(|response| response.id);

        // Score: one call of the component for each sample. Only a score reaches an advantage.
        let mut groups = vec![ScoredGroup::default(); PROMPTS_PER_STEP];
        let mut experiences = vec![Vec::new(); PROMPTS_PER_STEP];
        for response in responses {
            let (group, index) = (response.id as usize / GROUP_SIZE, response.id as usize % GROUP_SIZE);
            let message = Message::new(Role::Assistant, text.tokenizer.decode(&response.response)?);
            let trajectory = Trajectory { finish_reason: response.finish_reason, ..Trajectory::of(vec![message]) };
            let sample = Arc::new(Sample::new(tasks[group].clone(), index as u32, vec![trajectory]));
            let evaluation = sandbox.handle().block_on(reward.score(&sample, response.id));
            let Some(reward) = evaluation.outcome.score() else { continue };
            let loss_mask = vec![true; response.response.len()];
            let trajectories = vec![ScoredTrajectory { loss_mask: loss_mask.clone(), ..Default::default() }];
            groups[group].samples.push(ScoredSample { reward, trajectories, ..Default::default() });
            experiences[group].push(Experience {
                sample: SampleId { group, index, trajectory: 0 },
                prompt: prompts[group].clone(),
                response: response.response,
                loss_mask,
                logprobs: response.logprobs,
                versions: response.versions,
                ..Default::default()
            });
        }

        // Compare: the advantage of a sample is its reward compared with the rewards of its group.
        let estimated = AdvantageConfig::default().estimate(&groups, &RewardStatistics::default());
        for (experience, advantage) in experiences.iter_mut().flatten().zip(estimated.iter().flatten()) {
            experience.advantages = advantage.of_trajectory(0, experience.response.len());
        }

        // Learn: one optimiser step over the mini-batch.
        let (mini_batch, loss) = (experiences.concat(), LossConfig::default());
        let update = PolicyUpdate {
            model,
            reference: None,
            mini_batch: &mini_batch,
            loss: &loss,
            temperature: 1.0,
            learning_rate,
        };
        let statistics = trainer.update(update)?.statistics;
        engine.weights_changed();
        engine.set_version(step + 1);
        let rewards: Vec<f64> = groups.iter().flat_map(|group| &group.samples).map(|sample| sample.reward).collect();
        if rewards.is_empty() {
            return Err("the reward scored no sample".into());
        }
        let mean = rewards.iter().sum::<f64>() / rewards.len() as f64;
        println!("step {}: reward {mean:.3}, loss {:.4}", step + 1, statistics.get("loss").unwrap_or_default());
        means.push(mean);
    }
    Ok(means)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, reward, params, rows] = &arguments[..] else {
        return Err("usage: grpo MODEL REWARD.wasm '{\"its\": \"parameters\"}' ROWS.jsonl".into());
    };
    let (text, model) = (TextModel::load(Path::new(model))?, Model::load(Path::new(model), Kind::Float, Device::Cpu)?);
    let task = |row: gavel_data::Row| Task::from_row(row.columns, row.position, "train").map(Arc::new);
    let tasks = RowReader::open(Path::new(rows))?.map(|row| Ok::<_, Box<dyn Error>>(task(row?)?));
    let tasks: Vec<Arc<Task>> = tasks.collect::<Result<_, _>>()?;
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN))?;
    let spec = PluginSpec { params: serde_json::from_str(params)?, ..PluginSpec::new("reward", reward) };
    let reward = sandbox.handle().block_on(Plugin::load(&sandbox, spec))?;
    train(&model, &text, &sandbox, &reward, &tasks, 20, 1e-6).map(drop)
}
