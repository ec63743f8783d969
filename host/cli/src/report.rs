//! How an error that ends a command is shown.

use crate::terminal;

/// Prints an error with its causes.
pub fn error(error: &anyhow::Error) {
    terminal::error(&with_causes(error));
}

/// An error with the causes that its text does not contain.
pub fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(|cause| cause.to_string()) {
        match text.is_empty() {
            true => text = cause,
            false if text.contains(&cause) => {}
            false => {
                // A hint stays at the end.
                let (what, hint) = text.split_at(text.find("\nhint: ").unwrap_or(text.len()));
                text = format!("{what}: {cause}{hint}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
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
}
