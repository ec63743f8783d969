//! A line for each step of a run, where there is no terminal.

use super::watched::{PERIOD, Watched};
use crate::report::clipped;
use crate::terminal::outln;
use anyhow::Result;
use gavel_runs::{Metrics, Overview, RunState};
use std::thread::sleep;

/// The metrics of a line, and their names there.
const SHOWN: [(&str, &str); 6] = [
    ("val/accuracy", "accuracy"),
    ("reward/mean", "reward"),
    ("loss", "loss"),
    ("response_length/mean", "length"),
    ("perf/tokens_per_second", "tokens/s"),
    ("time/step", "seconds"),
];

/// Prints each step, and those that the run adds until it ends.
pub fn print(mut watched: Watched) -> Result<()> {
    let mut printed = None;
    loop {
        let steps = watched.read_new()?;
        // The run was resumed from an earlier step.
        printed = printed.min(watched.overview.step);
        for metrics in &steps {
            let step = metrics.get("step").unwrap_or_default() as u64;
            if printed.is_none_or(|printed| step > printed) {
                printed = Some(step);
                outln!("{}", line(metrics, watched.overview.steps));
            }
        }
        if watched.overview.state != RunState::Running {
            break;
        }
        sleep(PERIOD);
    }
    let Overview { run, state, error, .. } = &watched.overview;
    let error = error.as_deref().map(|error| format!(": {}", clipped(error))).unwrap_or_default();
    outln!("{}: {}{error}", run.display(), state.as_str());
    Ok(())
}

fn line(metrics: &Metrics, steps: Option<u64>) -> String {
    let of = steps.map(|steps| format!("/{steps}")).unwrap_or_default();
    let shown = SHOWN.iter().filter_map(|(name, short)| Some(format!("{short} {}", number(metrics.get(name)?))));
    let step = metrics.get("step").unwrap_or_default();
    std::iter::once(format!("step {step}{of}")).chain(shown).collect::<Vec<_>>().join("  ")
}

/// A number with four digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value == 0.0 => "0".to_owned(),
        1e-3..1e5 => {
            let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let found = [0.0, 0.8421, 12.0, 38589.06, -3.25, 3.2e-5, 1.5e7, 0.001].map(number);
        assert_eq!(found, ["0", "0.8421", "12.00", "38589", "-3.250", "3.20e-5", "1.50e7", "0.001000"]);
    }

    #[test]
    fn a_line_has_what_the_step_has() {
        let mut metrics = Metrics::of_step(3);
        metrics.set("loss", 0.5);
        metrics.set("reward/mean", 0.25);
        assert_eq!(line(&metrics, Some(10)), "step 3/10  reward 0.2500  loss 0.5000");
        assert_eq!(line(&Metrics::of_step(4), None), "step 4");
    }
}
