//! The variables that libtorch and its threads read when the process starts.

/// Variables that have another value than their default, unless the user sets them.
const VARIABLES: [(&str, &str); 6] = [
    // libgomp's threads sleep while they wait. By default they spin, which starves the plugins that share their cores.
    ("OMP_WAIT_POLICY", "PASSIVE"),
    // They still spin briefly, just long enough to bridge two operations of a small model: without this, decoding is
    // half as fast.
    ("GOMP_SPINCOUNT", "20000"),
    // libtorch's warnings about connections, with their stacks: gavel has messages of its own.
    ("TORCH_CPP_LOG_LEVEL", "ERROR"),
    // By default c10d aborts a rank whose GPU waits for one that is gone. Gavel ends it with a message that names the
    // other.
    ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"),
    // Batches of many lengths would leave gaps between blocks of a GPU's memory.
    ("PYTORCH_ALLOC_CONF", "expandable_segments:True"),
    // With it, products give the same bits each time where `resources.deterministic` asks for that.
    ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
];

/// Another name that a variable has.
const OLD_NAMES: [(&str, &str); 1] = [("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")];

/// The variables that are still to be set, and their values.
pub fn missing_variables() -> Vec<(&'static str, &'static str)> {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let is_missing = |name: &str| !is_set(name) && !OLD_NAMES.iter().any(|(new, old)| *new == name && is_set(old));
    VARIABLES.into_iter().filter(|(name, _)| is_missing(name)).collect()
}
