//! The scores of a row as a line of JSON.

use gavel_data::SampleOutcome;
use serde::Serialize;

#[derive(Serialize)]
struct OutputLine<'a> {
    id: Option<&'a str>,
    #[serde(flatten)]
    scores: &'a SampleOutcome,
}

/// Writes the scores of a row as a line of JSON; `id` is the task's id, absent where the row could not be read.
///
/// # Errors
/// None: all keys are strings, and a vector takes every byte.
pub fn write_line(out: &mut Vec<u8>, id: Option<&str>, scores: &SampleOutcome) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *out, &OutputLine { id, scores })?;
    out.push(b'\n');
    Ok(())
}
