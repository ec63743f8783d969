//! The key of an entry of the cache.

use std::hash::{Hash, Hasher};
use wasmtime::Engine;

/// The format of entries; it must change with anything that makes older entries wrong.
const FORMAT: &str = "gavel-components-6";

/// The hash of everything that an entry depends on.
pub(crate) struct Key(pub(crate) String);

impl Key {
    /// The hash of all `parts` and of the engine's version and settings.
    pub(crate) fn new(engine: &Engine, parts: &[&[u8]]) -> Self {
        let mut hasher = Blake3(blake3::Hasher::new());
        hasher.write(FORMAT.as_bytes());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        for part in parts {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        Self(hasher.0.finalize().to_hex().to_string())
    }

    /// The characters of a key.
    pub(crate) const LENGTH: usize = 2 * blake3::OUT_LEN;

    /// A key that another process has made; `None` if none can have made it.
    pub(crate) fn parse(key: &str) -> Option<Self> {
        blake3::Hash::from_hex(key).ok().map(|hash| Self(hash.to_hex().to_string()))
    }
}

/// The standard library's hashers are neither wide enough nor stable.
struct Blake3(blake3::Hasher);

impl Hasher for Blake3 {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let mut first = [0; 8];
        self.0.finalize_xof().fill(&mut first);
        u64::from_le_bytes(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_and_each_part_are_in_the_key() {
        let (plain, metered) = (Engine::default(), Engine::new(wasmtime::Config::new().consume_fuel(true)).unwrap());
        let keys = [
            Key::new(&plain, &[b"ab", b"c"]).0,
            Key::new(&plain, &[b"a", b"bc"]).0,
            Key::new(&plain, &[b"abc"]).0,
            Key::new(&metered, &[b"ab", b"c"]).0,
        ];
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{i}");
        }
        assert_eq!(keys[0], Key::new(&Engine::default(), &[b"ab", b"c"]).0);
    }
}
