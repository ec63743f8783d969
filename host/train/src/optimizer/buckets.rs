//! Tensors that several ranks compute with together, in pieces.

use std::ops::Range;
use tch::Tensor;

/// Neighbours of one kind and device, of together about `bytes` each.
pub(super) fn buckets(parameters: &[Tensor], bytes: usize) -> Vec<Range<usize>> {
    let size = |tensor: &Tensor| tensor.numel() * tensor.kind().elt_size_in_bytes();
    let mut buckets: Vec<Range<usize>> = Vec::new();
    let mut full = 0;
    for (at, parameter) in parameters.iter().enumerate() {
        let like = |other: &Tensor| (other.kind(), other.device()) == (parameter.kind(), parameter.device());
        match buckets.last_mut() {
            Some(bucket) if full + size(parameter) <= bytes && like(&parameters[bucket.start]) => {
                bucket.end = at + 1;
                full += size(parameter);
            }
            _ => {
                buckets.push(at..at + 1);
                full = size(parameter);
            }
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind};

    #[test]
    fn buckets_are_full_and_of_one_kind() {
        let tensor = |length: i64, kind| Tensor::zeros([length], (kind, Device::Cpu));
        let lengths = [2, 2, 2, 9, 1].map(|length| tensor(length, Kind::Float));
        assert_eq!(buckets(&lengths, 16), [0..2, 2..3, 3..4, 4..5]);
        assert_eq!(buckets(&lengths, 60), [0..4, 4..5]);
        let kinds = [tensor(1, Kind::Float), tensor(1, Kind::Double), tensor(1, Kind::Double)];
        assert_eq!(buckets(&kinds, 1000), [0..1, 1..3]);
        assert!(buckets(&[], 1000).is_empty());
    }
}
