//! `malloc` and its kin. What it knows of the blocks lies outside of the program's memory.

use super::memory::{Guest, State, narrow};
use std::collections::HashMap;
use wasmi::{Caller, Error, Linker};

const PAGE: u64 = 1 << 16;
/// No block is larger.
const MOST: u32 = 1 << 30;

#[derive(Default)]
pub struct Heap {
    /// The end of the blocks; 0 before the first one.
    top: u32,
    /// The capacity of each block in use.
    blocks: HashMap<u32, u32>,
    /// The blocks that have aligned ones in them, which programs know only.
    aligned: HashMap<u32, u32>,
    /// Freed blocks by their capacity.
    free: HashMap<u32, Vec<u32>>,
}

/// The capacity of a block of a size: few different ones, so that freed blocks fit again.
fn capacity(size: u32) -> u32 {
    match size {
        0..=1024 => size.max(1).next_multiple_of(16),
        _ => size.next_multiple_of((size.next_power_of_two() / 8).max(16)),
    }
}

/// A new block, or 0.
pub fn allocate(caller: &mut Caller<State>, size: u32) -> Result<u32, Error> {
    let memory = caller.data().memory.ok_or_else(super::memory::outside)?;
    if size > MOST {
        Guest::of(caller)?.set_errno(12);
        return Ok(0);
    }
    let capacity = capacity(size);
    let pages = memory.size(&*caller);
    let heap = &mut caller.data_mut().heap;
    if let Some(at) = heap.free.get_mut(&capacity).and_then(Vec::pop) {
        heap.blocks.insert(at, capacity);
        return Ok(at);
    }
    if heap.top == 0 {
        heap.top = u32::try_from(pages * PAGE).unwrap_or(!15);
    }
    let at = heap.top;
    let end = u64::from(at) + u64::from(capacity);
    if end > pages * PAGE {
        // In steps, as each one may copy the memory.
        let wanted = (end - pages * PAGE).div_ceil(PAGE);
        let spare = (pages / 4).min(1024).min((1 << 16) - 1 - (pages + wanted).min((1 << 16) - 1));
        if memory.grow(&mut *caller, wanted + spare).is_err() {
            Guest::of(caller)?.set_errno(12);
            return Ok(0);
        }
    }
    let heap = &mut caller.data_mut().heap;
    heap.top = end as u32;
    heap.blocks.insert(at, capacity);
    Ok(at)
}

fn zeroed(caller: &mut Caller<State>, size: u32) -> Result<u32, Error> {
    let at = allocate(caller, size)?;
    if at != 0 {
        Guest::of(caller)?.range_mut(at, size)?.fill(0);
    }
    Ok(at)
}

fn release(state: &mut State, at: u32) -> Result<(), Error> {
    if at == 0 {
        return Ok(());
    }
    let at = state.heap.aligned.remove(&at).unwrap_or(at);
    let capacity = state.heap.blocks.remove(&at).ok_or_else(|| Error::new("free(): invalid pointer"))?;
    state.heap.free.entry(capacity).or_default().push(at);
    Ok(())
}

/// The bytes that a block has from its address on.
fn room(state: &State, at: u32) -> Option<u32> {
    let block = state.heap.aligned.get(&at).copied().unwrap_or(at);
    Some(state.heap.blocks.get(&block)? - (at - block))
}

/// A block at a multiple of `align`, or 0.
fn aligned(caller: &mut Caller<State>, align: u32, size: u32) -> Result<u32, Error> {
    if align <= 16 {
        return allocate(caller, size);
    }
    let block = allocate(caller, size.saturating_add(align))?;
    let at = block.checked_next_multiple_of(align).unwrap_or(0);
    if at != block {
        caller.data_mut().heap.aligned.insert(at, block);
    }
    Ok(at)
}

fn reallocate(caller: &mut Caller<State>, at: u32, size: u32) -> Result<u32, Error> {
    if at == 0 {
        return allocate(caller, size);
    }
    let had = room(caller.data(), at).ok_or_else(|| Error::new("realloc(): invalid pointer"))?;
    if size <= had && capacity(size) * 2 >= had {
        return Ok(at);
    }
    let new = allocate(caller, size)?;
    if new != 0 {
        let (from, to) = (at as usize, new as usize);
        Guest::of(caller)?.memory.copy_within(from..from + had.min(size) as usize, to);
        release(caller.data_mut(), at)?;
    }
    Ok(new)
}

pub fn link(linker: &mut Linker<State>) -> Result<(), Error> {
    linker.func_wrap("env", "malloc", |mut caller: Caller<State>, size: u64| allocate(&mut caller, narrow(size)))?;
    for name in ["aligned_alloc", "memalign"] {
        linker.func_wrap("env", name, |mut caller: Caller<State>, align: u64, size: u64| {
            aligned(&mut caller, narrow(align), narrow(size))
        })?;
    }
    linker.func_wrap("env", "posix_memalign", |mut caller: Caller<State>, to: u32, align: u64, size: u64| {
        let at = aligned(&mut caller, narrow(align), narrow(size))?;
        Guest::of(&mut caller)?.put(to, &at.to_le_bytes())?;
        Ok::<i32, Error>(if at == 0 { 12 } else { 0 })
    })?;
    linker.func_wrap("env", "calloc", |mut caller: Caller<State>, count: u64, size: u64| {
        zeroed(&mut caller, narrow(count.saturating_mul(size)))
    })?;
    linker.func_wrap("env", "free", |mut caller: Caller<State>, at: u32| release(caller.data_mut(), at))?;
    linker.func_wrap("env", "realloc", |mut caller: Caller<State>, at: u32, size: u64| {
        reallocate(&mut caller, at, narrow(size))
    })?;
    linker.func_wrap("env", "reallocarray", |mut caller: Caller<State>, at: u32, count: u64, size: u64| {
        reallocate(&mut caller, at, narrow(count.saturating_mul(size)))
    })?;
    linker.func_wrap("env", "__errno_location", |mut caller: Caller<State>| {
        if caller.data().errno.is_none() {
            let at = zeroed(&mut caller, 4)?;
            caller.data_mut().errno = Some(at);
        }
        Ok::<u32, Error>(caller.data().errno.unwrap_or_default())
    })?;
    for name in ["strdup", "strndup"] {
        if name == "strdup" {
            linker
                .func_wrap("env", name, |mut caller: Caller<State>, text: u32| copied(&mut caller, text, u32::MAX))?;
        } else {
            linker.func_wrap("env", name, |mut caller: Caller<State>, text: u32, most: u64| {
                copied(&mut caller, text, narrow(most))
            })?;
        }
    }
    Ok(())
}

fn copied(caller: &mut Caller<State>, text: u32, most: u32) -> Result<u32, Error> {
    let text = Guest::of(caller)?.text_within(text, most)?.to_vec();
    written(caller, &text)
}

/// A new block with a text.
pub fn written(caller: &mut Caller<State>, text: &[u8]) -> Result<u32, Error> {
    let at = allocate(caller, u32::try_from(text.len() + 1).unwrap_or(u32::MAX))?;
    if at != 0 {
        Guest::of(caller)?.put_text(at, text)?;
    }
    Ok(at)
}
