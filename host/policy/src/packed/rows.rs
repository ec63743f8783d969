//! Rows of tokens, each alone or after another.

use crate::error::{PolicyError, Result};

/// Some tokens, and the row before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedRow {
    /// The row that these tokens follow. It must not follow another row itself.
    pub after: Option<usize>,
    /// At least one token id.
    pub tokens: Vec<u32>,
}

/// Refuses rows that cannot be packed.
pub(super) fn check(rows: &[PackedRow]) -> Result<()> {
    if rows.is_empty() {
        return Err(PolicyError::Input("there are no rows to pack".into()));
    }
    for (index, row) in rows.iter().enumerate() {
        let wrong = |what: String| Err(PolicyError::Input(format!("row {index} of the pack {what}")));
        match row.after.map(|after| rows.get(after)) {
            _ if row.tokens.is_empty() => return wrong("has no tokens".into()),
            Some(None) => return wrong(format!("follows another, but there are only {} rows", rows.len())),
            Some(Some(other)) if other.after.is_some() => {
                return wrong("follows a row that itself follows another".into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// How many tokens are before the tokens of a row.
pub(super) fn before(rows: &[PackedRow], row: usize) -> usize {
    rows[row].after.map_or(0, |after| rows[after].tokens.len())
}

/// How many tokens the last one of a row looks at.
pub(super) fn seen(rows: &[PackedRow], row: usize) -> usize {
    before(rows, row) + rows[row].tokens.len()
}
