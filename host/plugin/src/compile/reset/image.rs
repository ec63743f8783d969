//! The memory of a new instance.

use super::not_reset::NotReset;
use crate::compile::globals::only_operator;
use wasmparser::{Data, DataKind, MemoryType, Operator};

const PAGE: u64 = 64 << 10;
/// The smallest memory of an interpreter. A new instance with less costs less than setting one back.
const LEAST: u64 = 4 << 20;
/// The largest memory that is kept a second time, in the compiled component.
const MOST: u64 = 64 << 20;

/// The bytes of the memory.
pub(super) struct Image(pub(super) Vec<u8>);

impl Image {
    /// A memory of zeros.
    pub(super) fn of(memory: MemoryType) -> Result<Self, NotReset> {
        if memory.memory64 || memory.shared || memory.page_size_log2.is_some() {
            return Err(NotReset::Form("its memory has a form that no language's tools make"));
        }
        let bytes = memory.initial.saturating_mul(PAGE);
        if bytes < LEAST {
            return Err(NotReset::Form("its memory is so small that a new instance costs less"));
        }
        if bytes > MOST {
            return Err(NotReset::Form("its memory is larger than 64 MiB at the start"));
        }
        Ok(Self(vec![0; bytes as usize]))
    }

    /// Its size in pages.
    pub(super) fn pages(&self) -> i32 {
        // At most `MOST` bytes.
        (self.0.len() as u64 / PAGE) as i32
    }

    /// Writes a segment.
    pub(super) fn add(&mut self, segment: &Data<'_>) -> Result<(), NotReset> {
        let DataKind::Active { memory_index: 0, offset_expr } = &segment.kind else { return Ok(()) };
        let Some(Operator::I32Const { value }) = only_operator(offset_expr)? else {
            return Err(NotReset::Form("the place of a data segment is not a number"));
        };
        let start = value as u32 as usize;
        let place = self.0.get_mut(start..start.saturating_add(segment.data.len()));
        place.ok_or(NotReset::Form("a data segment is outside of the memory"))?.copy_from_slice(segment.data);
        Ok(())
    }
}
