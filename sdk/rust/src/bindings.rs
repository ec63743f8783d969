//! The contract as `wit-bindgen` writes it out. The crate's root re-exports
//! what a reward needs.

#![allow(missing_docs, clippy::undocumented_unsafe_blocks, reason = "generated from wit/")]

wit_bindgen::generate!({
    path: "wit",
    world: "reward-plugin",
    pub_export_macro: true,
    export_macro_name: "__export_reward_plugin",
    default_bindings_module: "gavel_sdk::bindings",
});
