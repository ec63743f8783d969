//! Settings of the engines that compile and run components.

use crate::budget::{HOST_STACK, STACK};
use wasmtime::Config;

/// Up to this size, the memory of a snapshot is mapped and not copied, however
/// sparse it is.
const IMAGE_BYTES: u64 = 128 << 20;

/// All settings that compiled code depends on.
pub(crate) fn engine_config(fuel: bool) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(fuel)
        .cranelift_nan_canonicalization(true)
        .max_wasm_stack(STACK)
        .async_stack_size(STACK + HOST_STACK)
        .memory_guaranteed_dense_image_size(IMAGE_BYTES);
    config
}
