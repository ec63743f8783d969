//! Whether the scores of a run are those that the judge gives: from the recording, and asked again.

use super::recorded::{self, Recorded};
use crate::command::Call;
use crate::demo::{self, Run};
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use toml::Table;

/// The scored samples that are asked again.
const ASKED_AGAIN: usize = 400;
const CONFIG: &str = "demo/learning-judge.toml";

/// Whether the scores of a run are those that the judge gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checks {
    /// Samples whose verdicts were given again from the recording.
    pub replayed: u64,
    /// Replayed samples that got another verdict.
    pub replayed_otherwise: u64,
    /// Samples with a score that the judge was asked about again, without the unreliable server.
    pub asked_again: u64,
    /// Samples asked about again that got another score.
    pub scored_otherwise: u64,
}

/// Replays the run, and asks the judge at `address` again about some of its samples.
pub fn take(root: &Path, run: &Run, address: &str) -> Result<Checks> {
    // Verdicts that differ are its exit status 1, and counted.
    let what = "cannot replay the run of the judge";
    let replay = Call::new(demo::built(root, "gavel"), ["replay", &run.folder, "--json"]).within(root).json(what)?;
    let number = |name: &str| {
        let wrong = || Failure::new(what).why(format!("its summary has no number {name:?}: {replay}"));
        replay.get(name).and_then(Value::as_u64).ok_or_else(wrong)
    };
    let samples = recorded::read(&root.join(&run.folder))?;
    let scored: Vec<&Recorded> = samples.iter().filter(|sample| sample.score("judge").is_some()).collect();
    let every = (scored.len() / ASKED_AGAIN).max(1);
    let chosen: Vec<&Recorded> = scored.into_iter().step_by(every).take(ASKED_AGAIN).collect();
    let scores = ask_again(root, &chosen, address)?;
    let differs = |(sample, score): (&&Recorded, Option<f64>)| score != sample.score("judge");
    Ok(Checks {
        replayed: number("samples")?,
        replayed_otherwise: number("different")?,
        asked_again: chosen.len() as u64,
        scored_otherwise: chosen.iter().zip(scores).filter(|pair| differs(*pair)).count() as u64,
    })
}

/// The scores that the judge gives now.
fn ask_again(root: &Path, samples: &[&Recorded], address: &str) -> Result<Vec<Option<f64>>> {
    let (rows, scores) = ("target/demo/asked-again.jsonl", "target/demo/asked-again-scores.jsonl");
    let row = |sample: &&Recorded| {
        format!("{}\n", json!({"id": sample.id, "prompt": sample.prompt, "response": sample.response}))
    };
    let path = root.join(rows);
    fs::write(&path, samples.iter().map(row).collect::<String>()).map_err(|error| cannot("write", &path, &error))?;
    let params = format!("judge={}", params(root)?);
    let chat = format!("judge={{ base_url = \"http://{address}/v1\", model = \"judge\" }}");
    #[rustfmt::skip]
    let arguments = [
        "score", "--plugin", "judge=target/plugins/llm-judge.wasm", "--params", &params, "--grant",
        "judge={ chat = [\"judge\"] }", "--chat", &chat, "--timeout", "2m", "--data", rows, "--out", scores,
    ];
    Call::new(demo::built(root, "gavel"), arguments).within(root).read("cannot ask the judge again")?;
    let path = root.join(scores);
    let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let score = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        line["plugins"]["judge"]["score"].as_f64()
    };
    Ok(text.lines().map(score).collect())
}

/// The parameters of the judge as JSON.
fn params(root: &Path) -> Result<Value> {
    let path = root.join(CONFIG);
    let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
    let wrong = || Failure::new(format!("{CONFIG} has no reward `judge` with params"));
    let config: Table = text.parse().map_err(|error: toml::de::Error| wrong().why(error))?;
    let rewards = config.get("reward").and_then(toml::Value::as_array).ok_or_else(wrong)?;
    let judge = rewards.iter().find(|reward| reward.get("name").and_then(toml::Value::as_str) == Some("judge"));
    let params = judge.and_then(|judge| judge.get("params")).ok_or_else(wrong)?;
    serde_json::to_value(params).map_err(|error| wrong().why(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judge_is_asked_again_as_the_run_asked_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let params = params(&root).unwrap();
        assert_eq!(params["options"]["temperature"], json!(0));
        assert_eq!(params["prompt"], json!("{prompt}\n{response}"));
    }
}
