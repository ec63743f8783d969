//! How an error that ends a command is shown.

use crate::terminal;
use clap::error::ErrorKind;
use gavel_data::disk;
use std::borrow::Cow;
use std::io;

/// The most bytes that are shown of the start of a long cause, and of its end, which may have a hint.
const SHOWN: usize = 2048;

/// Prints an error with its causes. A cause may quote a text of any length, of which the terminal gets the ends.
pub fn error(error: &anyhow::Error) {
    terminal::error(&joined(error, clipped));
}

/// An error with the causes that its text does not contain.
pub fn with_causes(error: &anyhow::Error) -> String {
    joined(error, |cause| cause.into())
}

fn joined(error: &anyhow::Error, shown: fn(&str) -> Cow<'_, str>) -> String {
    let (mut whole, mut text) = (String::new(), String::new());
    for cause in error.chain().map(|cause| cause.to_string()) {
        if whole.is_empty() || !whole.contains(&cause) {
            text = followed(text, &shown(&cause));
            whole = followed(whole, &cause);
        }
    }
    // A cause may give no hint itself, as an error of the system does not.
    if !text.contains("\nhint: ") {
        let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
        text.push_str(cause.map_or("", disk::hint));
    }
    text
}

/// An error with its cause. A hint stays at the end.
fn followed(text: String, cause: &str) -> String {
    if text.is_empty() {
        return cause.to_owned();
    }
    let (what, hint) = text.split_at(text.find("\nhint: ").unwrap_or(text.len()));
    format!("{what}: {cause}{hint}")
}

/// Ends the process with the error of the command line, of which an argument may be long.
pub fn usage_error(error: &clap::Error) -> ! {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    if let Cow::Owned(short) = clipped(&error.to_string())
        && !is_help
    {
        terminal::err_lines(&short);
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// A long text without its middle.
pub fn clipped(text: &str) -> Cow<'_, str> {
    let start = text.floor_char_boundary(SHOWN);
    let end = text.ceil_char_boundary(text.len().saturating_sub(SHOWN));
    if start >= end {
        return Cow::Borrowed(text);
    }
    let left_out = text[start..end].chars().count();
    Cow::Owned(format!("{}… ({left_out} characters left out) …{}", &text[..start], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_named_once() {
        let gone = || std::io::Error::other("it is gone");
        let within = anyhow::Error::new(gone()).context("cannot read a.jsonl");
        assert_eq!(super::with_causes(&within), "cannot read a.jsonl: it is gone");
        let told = anyhow::Error::new(gone()).context("cannot read a.jsonl: it is gone\nhint: write it");
        assert_eq!(super::with_causes(&told), "cannot read a.jsonl: it is gone\nhint: write it");
        let behind = anyhow::Error::new(gone()).context("cannot read a.jsonl\nhint: write it");
        assert_eq!(super::with_causes(&behind), "cannot read a.jsonl: it is gone\nhint: write it");
    }

    #[test]
    fn a_full_disk_has_a_hint_unless_there_is_one() {
        let full = || anyhow::Error::new(io::Error::from(io::ErrorKind::StorageFull));
        let hint = disk::hint(&io::Error::from(io::ErrorKind::StorageFull));
        let within = with_causes(&full().context("cannot write a.jsonl"));
        assert_eq!(within, format!("cannot write a.jsonl: no storage space{hint}"));
        let known = with_causes(&full().context("cannot write a.jsonl\nhint: set TMPDIR"));
        assert_eq!(known, "cannot write a.jsonl: no storage space\nhint: set TMPDIR");
    }

    #[test]
    fn a_long_cause_is_shown_without_its_middle_and_recorded_whole() {
        let (long, end) = ("é".repeat(100_000), "é".repeat(SHOWN / 2));
        let short = format!("{end}… ({} characters left out) …{end}", 100_000 - SHOWN);
        let error = anyhow::anyhow!("{long}").context(format!("cannot read a.jsonl{long}"));
        assert_eq!(with_causes(&error), format!("cannot read a.jsonl{long}"));
        let shown = joined(&error, clipped);
        assert!(shown.starts_with("cannot read a.jsonléé") && shown.ends_with(&end), "{shown}");
        assert_eq!(shown.matches("left out").count(), 1, "{shown}");

        let error = anyhow::anyhow!("{long}").context("cannot read a.jsonl\nhint: write it");
        assert_eq!(joined(&error, clipped), format!("cannot read a.jsonl: {short}\nhint: write it"));
        assert!(matches!(clipped(&"x".repeat(2 * SHOWN)), Cow::Borrowed(_)));
    }
}
