//! The contract as `wit-bindgen` writes it out. The crate's root re-exports
//! what a plugin needs.
//!
//! The files of `bindings/` are generated from `wit/` in Gavel's repository:
//! to generate them in a plugin's build would compile the generator first,
//! which takes minutes.

#![allow(missing_docs, reason = "generated from wit/")]
#![allow(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::panic, reason = "generated from wit/")]

include!("bindings/imports.rs");

/// What every plugin exports.
pub mod lifecycle {
    include!("bindings/lifecycle.rs");

    pub use exports::gavel::plugin::lifecycle::*;
}

/// What a reward exports.
pub mod reward {
    include!("bindings/reward.rs");

    pub use exports::gavel::plugin::reward::*;
}

/// What a judger exports.
pub mod judger {
    include!("bindings/judger.rs");

    pub use exports::gavel::plugin::judger::*;
}

/// What a taskset exports.
pub mod taskset {
    include!("bindings/taskset.rs");

    pub use exports::gavel::plugin::taskset::*;
}
