//! Sets an instance back to its snapshot, by the functions that its component got
//! for this when it was compiled.

use crate::compile::{RESET_MEMORY, RESET_MEMORY_START, RESET_REST, RESET_STRETCHES};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use wasmtime::component::{Component, ComponentExportIndex, Instance, WasmList};
use wasmtime::{Result, Store};

/// The most pages that are set back: somewhat more than a slot of the pool may keep from a large call, which count as
/// written ever after. With more, a new instance costs less than the next call would lose.
const MOST_PAGES: usize = 2500;
/// The most handles that are ordered. With more, it takes as long as a new instance.
const MOST_HANDLES: usize = 5000;
/// The pages between two stretches that are set back with them: their copy takes less time than a stretch of its own.
const GAP: usize = 1;
/// The size of the kernel's pages. Where it differs, instances are not set back.
const PAGE: usize = 4096;
const WASM_PAGE: usize = 64 << 10;

/// The functions that set instances of a component back.
pub(crate) struct Reset {
    memory_start: ComponentExportIndex,
    memory: ComponentExportIndex,
    rest: ComponentExportIndex,
}

impl Reset {
    /// `None` if the component does not have them, or the kernel does not show which pages were written.
    pub(crate) fn of(component: &Component) -> Option<Self> {
        let function = |name| component.get_export_index(None, name);
        let (memory_start, memory, rest) =
            (function(RESET_MEMORY_START)?, function(RESET_MEMORY)?, function(RESET_REST)?);
        shows_written_pages().then_some(Self { memory_start, memory, rest })
    }

    /// Sets an instance back that holds no handles, and held at most `handles` since it was new or set back. It then
    /// equals a new one in all that its guest can see. Returns whether it could be; if not, it must not be called again.
    pub(crate) async fn set_back<T: Send>(
        &self,
        store: &mut Store<T>,
        instance: &Instance,
        handles: usize,
    ) -> Result<bool> {
        if handles > MOST_HANDLES {
            return Ok(false);
        }
        // What a memory has grown by cannot be given back.
        let Some(size) = self.set_rest_back(store, instance, handles).await? else { return Ok(false) };
        let start = self.memory_start(store, instance).await?;
        let Some(written) = written_pages(start, size * (WASM_PAGE / PAGE)) else { return Ok(false) };
        let stretches = stretches(&written);
        if stretches.iter().map(ExactSizeIterator::len).sum::<usize>() > MOST_PAGES {
            return Ok(false);
        }
        self.set_memory_back(store, instance, &stretches).await?;
        Ok(true)
    }

    /// Sets the globals and the order of free handles back. Returns the size of the memory in WebAssembly's pages, unless a
    /// new one has another.
    async fn set_rest_back<T: Send>(
        &self,
        store: &mut Store<T>,
        instance: &Instance,
        handles: usize,
    ) -> Result<Option<usize>> {
        // It may hold as many still.
        let rest = instance.get_typed_func::<(u32,), (u32,)>(&mut *store, self.rest)?;
        let (size,) = rest.call_async(&mut *store, (u32::try_from(handles)?,)).await?;
        Ok((size > 0).then_some(size as usize))
    }

    /// The address where the memory of an instance starts.
    async fn memory_start<T: Send>(&self, store: &mut Store<T>, instance: &Instance) -> Result<usize> {
        let function = instance.get_typed_func::<(), (WasmList<u8>,)>(&mut *store, self.memory_start)?;
        let (list,) = function.call_async(&mut *store, ()).await?;
        Ok(list.as_le_slice(&*store).as_ptr().addr())
    }

    async fn set_memory_back<T: Send>(
        &self,
        store: &mut Store<T>,
        instance: &Instance,
        stretches: &[Range<usize>],
    ) -> Result<()> {
        type Ends = (u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32);
        let function = instance.get_typed_func::<Ends, ()>(&mut *store, self.memory)?;
        for some in stretches.chunks(RESET_STRETCHES) {
            // The lengths of missing stretches are 0.
            let mut ends = [0; 2 * RESET_STRETCHES];
            for (at, stretch) in some.iter().enumerate() {
                // A memory that is set back is far smaller than 4 GiB.
                ends[2 * at] = (stretch.start * PAGE) as u32;
                ends[2 * at + 1] = (stretch.len() * PAGE) as u32;
            }
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = ends;
            function.call_async(&mut *store, (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)).await?;
        }
        Ok(())
    }
}

/// The stretches of pages that have all written ones.
fn stretches(written: &[bool]) -> Vec<Range<usize>> {
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for page in (0..written.len()).filter(|page| written[*page]) {
        match stretches.last_mut() {
            Some(last) if page - last.end <= GAP => last.end = page + 1,
            _ => stretches.push(page..page + 1),
        }
    }
    stretches
}

/// Whether the kernel shows which pages were written.
fn shows_written_pages() -> bool {
    let page = vec![1_u8; 2 * PAGE];
    let start = page.as_ptr().addr().next_multiple_of(PAGE);
    cfg!(target_os = "linux") && has_small_pages() && written_pages(start, 1) == Some(vec![true])
}

fn has_small_pages() -> bool {
    // SAFETY: it has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page) == Ok(PAGE)
}

/// Which of the pages from an address may have been written since they were mapped: all that are the process's own, in
/// memory or in swap, and not those of the mapped file. `None` if the kernel does not say.
///
/// The format is in the kernel's `Documentation/admin-guide/mm/pagemap.rst`.
fn written_pages(start: usize, pages: usize) -> Option<Vec<bool>> {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const OF_FILE: u64 = 1 << 61;
    let mut entries = vec![0; pages * size_of::<u64>()];
    // Opened each time: after a fork, it would show the pages of the parent.
    let file = File::open("/proc/self/pagemap").ok()?;
    file.read_exact_at(&mut entries, (start / PAGE * size_of::<u64>()) as u64).ok()?;
    let is_own = |entry: &[u8; 8]| {
        let entry = u64::from_le_bytes(*entry);
        entry & (PRESENT | SWAPPED) != 0 && entry & OF_FILE == 0
    };
    Some(entries.as_chunks().0.iter().map(is_own).collect())
}

#[cfg(test)]
mod tests;
