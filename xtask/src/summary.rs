//! The summary that the demo prints at its end.

use crate::demo::Run;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::ui::Seconds;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Validation accuracy over a run.
#[derive(Debug, PartialEq)]
pub struct Curve {
    /// Step and greedy accuracy in `[0, 1]`, in the order of steps; never empty.
    points: Vec<(u64, f64)>,
}

impl Curve {
    /// Reads it from a run's `metrics.jsonl`.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_metric(path, "val/accuracy")
    }

    /// Reads another metric of validation.
    pub fn read_metric(path: &Path, name: &str) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
        let point = |line: &str| {
            let metrics: Value = serde_json::from_str(line).ok()?;
            Some((metrics.get("step")?.as_u64()?, metrics.get(name)?.as_f64()?))
        };
        let points: Vec<_> = text.lines().filter_map(point).collect();
        if points.is_empty() {
            return Err(Failure::new(format!("no line of {} has {name}", path.display()))
                .hint("the run's configuration must validate at least once"));
        }
        Ok(Self { points })
    }
}

/// The summary of the demo's `run`; the demo took `time`.
pub fn demo(curve: &Curve, run: &Run, time: Duration) -> String {
    let bar = |accuracy: f64| "#".repeat((accuracy * 40.0).round() as usize);
    let rows: String = curve
        .points
        .iter()
        .map(|&(step, accuracy)| format!("  step {step:>4}  {:>5.1} %  {}\n", accuracy * 100.0, bar(accuracy)))
        .collect();
    let (before, after) = (curve.points[0].1 * 100.0, curve.points[curve.points.len() - 1].1 * 100.0);
    format!(
        "
Greedy accuracy on 500 questions that training never saw:
{rows}
From {before:.1} % after the warm-up to {after:.1} % after reinforcement learning, in {time}.

The run is in {folder}/:
  config.toml, metrics.jsonl, trajectories/, checkpoints/, and event files for TensorBoard

Try next:
  target/release/gavel generate -m {checkpoint} --chat --prompt 'Smallest first, please: 4 0 9 8' --temperature 0
  target/release/gavel eval -c demo/train.toml --checkpoint {checkpoint}
  target/release/gavel replay {folder}
  target/release/gavel plugin inspect target/plugins/exact-answer.wasm
  plugins/exact-answer/src/lib.rs is a reward to start yours from
",
        folder = run.folder,
        checkpoint = run.checkpoint,
        time = Seconds(time),
    )
}

/// The summary of the run of the demo with tools; the demo took `time`.
pub fn demo_tools(accuracy: &Curve, calls: &Curve, run: &Run, time: Duration) -> String {
    let rows: String = accuracy
        .points
        .iter()
        .zip(&calls.points)
        .map(|(&(step, accuracy), &(_, calls))| format!("  {step:>4}  {:>7.1} %  {calls:>5.2}\n", accuracy * 100.0))
        .collect();
    let ends = |curve: &Curve| (curve.points[0].1, curve.points[curve.points.len() - 1].1);
    let ((before, after), (few, many)) = (ends(accuracy), ends(calls));
    format!(
        "
Greedy answers to 300 products that training never saw:
  step   accuracy  calls
{rows}
From {:.1} % with {few:.2} calls an answer to {:.1} % with {many:.2}, in {time}.

The run is in {folder}/. Try next:
  target/release/gavel eval -c demo/tools.toml --checkpoint {checkpoint} --samples 4
  docs/agents.md says how to offer other tools
",
        before * 100.0,
        after * 100.0,
        folder = run.folder,
        checkpoint = run.checkpoint,
        time = Seconds(time),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Result<Curve> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        fs::write(&path, lines).unwrap();
        Curve::read(&path)
    }

    #[test]
    fn the_curve_is_where_validation_was() {
        let curve = read(
            "{\"step\":0,\"val/accuracy\":0.3}\n{\"step\":1,\"reward/mean\":0.5}\n{\"step\":20,\"val/accuracy\":0.875}\n",
        )
        .unwrap();
        assert_eq!(curve.points, [(0, 0.3), (20, 0.875)]);
        let run = Run { folder: "runs/demo".into(), checkpoint: "runs/demo/checkpoints/step-000020".into() };
        let text = demo(&curve, &run, Duration::from_secs(130));
        assert!(text.contains("--checkpoint runs/demo/checkpoints/step-000020\n"), "{text}");
        assert!(text.contains("From 30.0 % after the warm-up to 87.5 % after"), "{text}");
        assert!(text.contains(&format!("step   20   87.5 %  {}\n", "#".repeat(35))), "{text}");
        assert!(text.contains("in 2 min 10 s"), "{text}");

        let calls = Curve { points: vec![(0, 0.0), (20, 1.0)] };
        let text = demo_tools(&curve, &calls, &run, Duration::from_secs(130));
        assert!(text.contains("    20     87.5 %   1.00\n"), "{text}");
        assert!(text.contains("From 30.0 % with 0.00 calls an answer to 87.5 % with 1.00, in 2 min 10 s"), "{text}");
    }

    #[test]
    fn a_run_without_validation_is_a_failure() {
        let error = read("{\"step\":1,\"reward/mean\":0.5}\n").unwrap_err().to_string();
        assert!(error.contains("has val/accuracy"), "{error}");
    }
}
