//! Merges the core modules of a component into one.
//!
//! The modules of a Python component share a table and a memory. One module owns
//! both, and wasmtime fills a table lazily only where the module that fills it
//! owns it. Merged, an instance starts without filling the table, and a call
//! between two of the modules is direct.

mod graph;
mod indices;
mod member;
mod members;
mod not_merged;
mod rewrite;
mod sections;
mod valid;

use graph::Graph;
use not_merged::NotMerged;
use std::borrow::Cow;
use wasmparser::types::Types;

/// The component with one core module in place of all that can be merged. It
/// depends only on the component's bytes, and so does the fuel of its calls. It is
/// valid if it is merged.
pub(crate) fn merged(component: &[u8]) -> Cow<'_, [u8]> {
    match merge(component) {
        Ok(merged) => Cow::Owned(merged),
        Err(reason) => {
            tracing::debug!("the modules of a component are not merged: {reason}");
            Cow::Borrowed(component)
        }
    }
}

/// The items of a component without features that the languages' tools do not use; `None` if it is something else.
pub(super) fn items(component: &[u8]) -> Result<Option<Types>, wasmparser::Error> {
    valid::items(component)
}

/// Validates a component or a module but for the bodies of its functions. One with features that the languages' tools do
/// not use is refused.
pub(super) fn validate_items(wasm: &[u8]) -> Result<(), wasmparser::Error> {
    valid::validate_items(wasm)
}

fn merge(component: &[u8]) -> Result<Vec<u8>, NotMerged> {
    valid::validate_built(component)?;
    let merged = rewrite::rewrite(component, &Graph::parse(component)?)?;
    valid::validate_merged(&merged)?;
    Ok(merged)
}

#[cfg(test)]
mod tests;
