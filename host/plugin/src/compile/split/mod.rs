//! Splits a component into code and data. Components of one language and kind
//! have the same code, and so has one before and after its snapshot, with other
//! parameters and in each version of its source. So it is compiled once for all
//! of them, in modules of their own that the component imports.

mod data;
mod module;
mod names;
mod not_split;
mod outline;
mod rewrite;
mod types;

use crate::compile::merge::validate_items;
pub(crate) use names::{code_name, is_code_name};
use not_split::NotSplit;
use outline::Outline;
pub(super) use rewrite::Split;

/// The least code of a module that is split off, which is that of an interpreter. A new instance of a small reward in Rust
/// takes a quarter more time with its data in other modules.
pub(super) const LEAST: usize = 2 << 20;

/// Splits the code off, if there is much, and the form of the component allows it.
pub(super) fn split(component: &[u8]) -> Option<Split> {
    match split_off(component, LEAST) {
        Ok(split) => Some(split),
        Err(reason) => {
            tracing::debug!("the code of a component is not split off: {reason}");
            None
        }
    }
}

fn split_off(component: &[u8], least: usize) -> Result<Split, NotSplit> {
    // An invalid component could be valid once it is split, and the compiler sees only the result.
    validate_items(component)?;
    let split = rewrite::rewrite(component, &Outline::of(component, least)?)?;
    // With more modules, and more exports of them, it can exceed a limit.
    [&split.component].into_iter().chain(&split.code).try_for_each(|wasm| validate_items(wasm))?;
    Ok(split)
}

#[cfg(test)]
mod tests;
