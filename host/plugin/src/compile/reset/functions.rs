//! The functions that set an instance back, by the names under which the
//! component exports them.

/// Returns an empty list at the start of the memory, so that the host sees the address. `() -> list<u8>`
pub(crate) const MEMORY_START: &str = "gavel-reset-memory-start";
/// Sets stretches of the memory back, which are given as starts and lengths. `(u32 × 16) -> ()`
pub(crate) const MEMORY: &str = "gavel-reset-memory";
/// The stretches of one call. A function has at most 16 parameters that are numbers.
pub(crate) const STRETCHES: usize = 8;
/// Sets the globals back, and the order of the free handles of an instance that holds none and never held more than
/// the given number. Returns the size of the memory in pages of 64 KiB, or 0 if a new instance has another. `u32 -> u32`
pub(crate) const REST: &str = "gavel-reset-rest";
