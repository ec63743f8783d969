//! Tensors that several ranks compute with together, in pieces.

use crate::error::Result;
use gavel_torch::peers::Peers;
use std::ops::Range;
use tch::Tensor;

/// Gradients are summed, and parameters sent, in pieces of about this many bytes, so that one is copied while others are
/// summed. The models of tests are small.
pub(super) const BUCKET_BYTES: usize = if cfg!(test) { 1 << 10 } else { 25 << 20 };

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

/// Gives all ranks the parameters of rank 0.
pub(super) fn begin_alike(parameters: &[Tensor], peers: &Peers) -> Result<()> {
    let several = if peers.size() > 1 { parameters } else { &[] };
    buckets(several, BUCKET_BYTES).into_iter().try_for_each(|bucket| send(peers, &several[bucket], 0))
}

/// Overwrites tensors of one kind and device, at least one, with the tensors of the rank `from`.
pub(super) fn send(peers: &Peers, tensors: &[Tensor], from: usize) -> Result<()> {
    let _guard = tch::no_grad_guard();
    let flat = tensors.iter().map(|tensor| tensor.f_flatten(0, -1)).collect::<std::result::Result<Vec<_>, _>>()?;
    let flat = Tensor::f_cat(&flat, 0)?;
    peers.broadcast(&flat, from)?;
    if peers.rank() == from {
        return Ok(());
    }
    let mut start = 0;
    for tensor in tensors {
        let length = tensor.numel() as i64;
        tensor.shallow_clone().f_copy_(&flat.f_narrow(0, start, length)?.f_view_as(tensor)?)?;
        start += length;
    }
    Ok(())
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
