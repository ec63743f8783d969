//! How a run begins.

/// How a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A new run in a new folder.
    New,
    /// The newest run of its name continues.
    Resume {
        /// The step of the checkpoint to resume from; the last one by default.
        from: Option<u64>,
        /// Whether the run may continue with changed plugins.
        allow_changed_plugins: bool,
    },
    /// A run whose ranks were started again, as torchrun does it after one has died: it continues from its last
    /// checkpoint, or begins if it has none.
    Again,
}
