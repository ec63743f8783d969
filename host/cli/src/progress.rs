//! Progress of long work, on a terminal only.

use crate::terminal;
use indicatif::{ProgressBar, ProgressStyle};

/// A line that counts `unit` with its rate; `total` where it is known.
pub fn bar(total: Option<u64>, unit: &str) -> ProgressBar {
    if !terminal::stderr_is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total), format!("{{bar:30}} {{pos}}/{{len}} {unit}, {{per_sec}}, {{eta}} left"))
        }
        None => (ProgressBar::new_spinner(), format!("{{spinner}} {{pos}} {unit}, {{per_sec}}")),
    };
    match ProgressStyle::with_template(&template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
