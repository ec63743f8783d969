//! A module that is merged, and the definitions of its items.

use super::graph::{KINDS, Kind};
use std::collections::{HashMap, HashSet};

/// The definition of an item of the merged module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Definer {
    /// An import, by its number.
    Import(u32),
    /// A member, and the number among the items that it defines.
    Member { member: usize, number: u32 },
}

/// A module that becomes part of the merged one.
#[derive(Default)]
pub(super) struct Member<'a> {
    /// The module's bytes, which are parsed again rather than kept as a list: a
    /// payload is larger than a short function.
    pub(super) wasm: &'a [u8],
    /// By kind, the definitions that it imports.
    pub(super) imported: [Vec<Definer>; KINDS],
    /// By kind, how many items it defines.
    pub(super) defined: [u32; KINDS],
    pub(super) types: u32,
    pub(super) elements: u32,
    pub(super) data: u32,
    pub(super) exports: HashMap<&'a str, (Kind, u32)>,
    pub(super) starts: bool,
    /// The tables and memories that its segments are written to.
    pub(super) writes: HashSet<(Kind, Definer)>,
}

impl Member<'_> {
    /// The definition of an item by the index that it has here, as this is the member `member`.
    pub(super) fn definer(&self, member: usize, kind: Kind, index: u32) -> Definer {
        let imported = &self.imported[kind as usize];
        match imported.get(index as usize) {
            Some(definer) => *definer,
            None => Definer::Member { member, number: index - imported.len() as u32 },
        }
    }
}
