//! The contract, the SDKs and the templates, embedded when this crate was
//! built, and a hash of the sources that build components.

mod table {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// The version of the package `gavel:plugin` in [`under`]`("wit")`.
pub(crate) const CONTRACT_VERSION: &str = table::VERSION;

/// The files below `folder`, each by its path from there. The folders are
/// `wit`, `wasi`, `rust`, `python`, `js` and `c`, with what lies below them in
/// the repository, and `builder`, sources of this crate.
pub(crate) fn under(folder: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    table::FILES.iter().filter_map(move |(name, bytes)| {
        let rest = name.strip_prefix(folder)?.strip_prefix('/')?;
        Some((rest, *bytes))
    })
}

/// A hash of everything in this crate that affects a component: the contract,
/// the code of each language, and the crates that make components.
pub(crate) fn builder() -> blake3::Hash {
    let mut all = blake3::Hasher::new();
    all.update(table::CRATES.as_bytes());
    for (name, bytes) in ["wit", "wasi", "builder", "python/tool"].into_iter().flat_map(under) {
        all.update(name.as_bytes()).update(&[0]).update(blake3::hash(bytes).as_bytes());
    }
    all.finalize()
}

/// The licence that a copy of an SDK is under.
pub(crate) fn licence() -> &'static [u8] {
    table::FILES.iter().find(|(name, _)| *name == "LICENSE").map_or(&[], |(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_is_there_with_its_version() {
        let types = under("wit").find(|(name, _)| *name == "types.wit").unwrap().1;
        let package = format!("package gavel:plugin@{CONTRACT_VERSION};");
        assert!(String::from_utf8_lossy(types).starts_with(&package));
        assert!(!licence().is_empty());
    }
}
