//! `gavel runs show --sample`

use crate::replay::print::recorded;
use crate::terminal::{self, errln, outln};
use anyhow::{Result, bail};
use gavel_data::Shown;
use gavel_runs::{SampleReader, is_run, layout};
use gavel_scoring::replay::RecordedVerdicts;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// Prints the sample with this id, or with this number among those that a step recorded.
pub fn run(run: &Path, wanted: &str, as_json: bool) -> Result<ExitCode> {
    if !is_run(run) {
        bail!("{} is no run\nhint: name the folder of a run, such as runs/demo", Shown(run.display()));
    }
    if layout::rows(run).is_dir() && !layout::trajectories(run).is_dir() {
        bail!(
            "{0} is a run of gavel sft, which drew no samples\nhint: gavel replay {0} --step N prints the rows that a step trained on",
            Shown(run.display())
        );
    }
    let reader = SampleReader::open_for_few(run)?;
    let place = wanted.split_once('/').map(|(step, number)| (step.parse(), number.parse()));
    let found = match place {
        Some((Ok(step), Ok(number))) => reader.nth(step, number)?.map(|sample| (step, sample)),
        Some(_) => bail!(
            "--sample {wanted} is no sample\nhint: write an id, such as 300.12.5, or STEP/NUMBER, such as 300/512"
        ),
        None => reader.find(wanted, None)?,
    };
    let Some((step, sample)) = found else {
        let damage = reader.damage();
        damage.iter().for_each(|line| errln!("damaged: {line}"));
        bail!(
            "{} has no sample {wanted}{}",
            Shown(run.display()),
            known(&reader, place.and_then(|(step, _)| step.ok()))?
        );
    };
    let verdicts = RecordedVerdicts::from(&sample);
    if as_json {
        let mut shown = json!(verdicts);
        shown["recorded_step"] = step.into();
        shown["trained_step"] = sample.trained_step.into();
        shown["advantages"] = json!(sample.advantages);
        shown["trajectories"] =
            json!(sample.sample.trajectories.iter().map(|trajectory| &trajectory.messages).collect::<Vec<_>>());
        terminal::json_pretty(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let trained =
        sample.trained_step.map_or("no step trained on it".to_owned(), |step| format!("step {step} trained on it"));
    outln!("{}: recorded by step {step}; {trained}", Shown(run.display()));
    recorded(&[verdicts]);
    Ok(ExitCode::SUCCESS)
}

/// What a run has instead of a sample that it lacks.
fn known(reader: &SampleReader, step: Option<u64>) -> Result<String> {
    if let Some(step) = step
        && let count @ 1.. = reader.count(step)?
    {
        return Ok(format!("\nhint: step {step} has {count} samples, {step}/0 to {step}/{}", count - 1));
    }
    let steps: Vec<u64> = reader.steps().collect();
    Ok(match (steps.first(), steps.last()) {
        (Some(first), Some(last)) => format!("\nhint: it has samples of the steps {first} to {last}"),
        _ => "\nhint: it recorded none; log.trajectories may be false".to_owned(),
    })
}
