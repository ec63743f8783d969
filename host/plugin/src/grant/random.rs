//! `random`: the random numbers of a plugin. By default they follow from the
//! run's seed and the sample.

use blake3::{Hasher, OutputReader};
use rand_core::TryRng;
use std::convert::Infallible;

/// An endless stream of bytes: BLAKE3's extended output over a seed. Each purpose
/// has its own, so a guest that reads from both never sees the same bytes twice.
pub(super) struct Seeded {
    seed: u64,
    purpose: &'static str,
    // Created at the first use: most calls draw nothing, and a hash takes a tenth of a short call.
    stream: Option<OutputReader>,
}

impl Seeded {
    pub(super) fn new(seed: u64, purpose: &'static str) -> Self {
        Self { seed, purpose, stream: None }
    }
}

impl TryRng for Seeded {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        let (seed, purpose) = (self.seed, self.purpose);
        self.stream.get_or_insert_with(|| stream(seed, purpose)).fill(bytes);
        Ok(())
    }
}

/// The value of `wasi:random/insecure-seed`, which seeds hash maps.
pub(super) fn insecure_seed(seed: u64) -> u128 {
    u128::from(seed) << 64 | u128::from(!seed)
}

fn stream(seed: u64, purpose: &str) -> OutputReader {
    Hasher::new().update(&seed.to_le_bytes()).update(purpose.as_bytes()).finalize_xof()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(seed: u64, purpose: &'static str, pieces: &[usize]) -> Vec<u8> {
        let mut random = Seeded::new(seed, purpose);
        let draw = |piece: &usize| {
            let mut bytes = vec![0; *piece];
            random.try_fill_bytes(&mut bytes).unwrap();
            bytes
        };
        pieces.iter().flat_map(draw).collect()
    }

    #[test]
    fn a_stream_follows_from_seed_and_purpose_and_does_not_repeat() {
        let whole = bytes(7, "secure", &[4096]);
        assert_eq!(whole, bytes(7, "secure", &[1, 95, 4000]));
        assert_ne!(whole[..64], bytes(8, "secure", &[64]));
        assert_ne!(whole[..64], bytes(7, "insecure", &[64]));
        let blocks: std::collections::BTreeSet<&[u8]> = whole.chunks(16).collect();
        assert_eq!(blocks.len(), 256);
    }
}
