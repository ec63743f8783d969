//! The output of set-up: one line a step on the standard error. The standard
//! output is for results.

use crate::failure::{Failure, Result};
use std::fmt;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The step whose title is printed and whose outcome belongs in the same line. Steps of several threads may be under way.
static OPEN: Mutex<Option<String>> = Mutex::new(None);

/// Prints the title of a step, then its outcome in words and its time. Returns
/// the step's value.
pub fn step<T>(title: &str, run: impl FnOnce() -> Result<(T, String)>) -> Result<T> {
    start(title);
    let begun = Instant::now();
    let done = run();
    let found = done.as_ref().map_or("failed", |(_, found)| found);
    end(title, &format!("{found} ({})", Seconds(begun.elapsed())));
    done.map(|(value, _)| value)
}

/// Like [`step`], for a step whose commands print their own output. `about`
/// describes the step at its start; a separate line reports its end.
pub fn loud_step<T>(title: &str, about: &str, run: impl FnOnce() -> Result<(T, String)>) -> Result<T> {
    start(title);
    end(title, about);
    let begun = Instant::now();
    let (value, found) = run()?;
    end(title, &format!("{found} ({})", Seconds(begun.elapsed())));
    Ok(value)
}

/// Begins a line with the title of a step.
fn start(title: &str) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open.replace(title.to_owned()).is_some() {
        eprintln!();
    }
    eprint!("{} ", bold(&format!("{title}:")));
}

/// Ends the line of a step, or prints a line of its own if another one began meanwhile.
fn end(title: &str, outcome: &str) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    match open.take() {
        Some(begun) if begun == title => {}
        other => {
            if other.is_some() {
                eprintln!();
            }
            eprint!("{} ", bold(&format!("{title}:")));
        }
    }
    eprintln!("{outcome}");
}

/// Prints a failure.
pub fn report(failure: &Failure) {
    eprintln!("{} {failure}", paint("error:", "1;31"));
}

/// `text` set off from the rest, where the standard error can show it.
pub fn bold(text: &str) -> String {
    paint(text, "1")
}

fn paint(text: &str, code: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || !std::io::stderr().is_terminal();
    if plain { text.to_owned() } else { format!("\x1b[{code}m{text}\x1b[0m") }
}

/// A duration, in units that suit its length.
pub struct Seconds(pub Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if seconds < 60 {
            write!(f, "{:.1} s", self.0.as_secs_f64())
        } else {
            write!(f, "{} min {:02} s", seconds / 60, seconds % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(Seconds(Duration::from_millis(1234)).to_string(), "1.2 s");
        assert_eq!(Seconds(Duration::from_secs(125)).to_string(), "2 min 05 s");
    }
}
