//! The contract as `wit-bindgen` writes it out. The crate's root re-exports
//! what a plugin needs.

#![allow(missing_docs, clippy::undocumented_unsafe_blocks, reason = "generated from wit/")]

wit_bindgen::generate!({
    path: "wit",
    inline: "
        package gavel:sdk;

        world imports {
            import gavel:plugin/types@0.1.0;
            import gavel:plugin/samples@0.1.0;
            import gavel:plugin/references@0.1.0;
            import gavel:plugin/chat@0.1.0;
            import gavel:plugin/exec@0.1.0;
        }
    ",
    world: "gavel:sdk/imports",
    generate_all,
});

/// What every plugin exports.
pub mod lifecycle {
    wit_bindgen::generate!({
        path: "wit",
        inline: "package gavel:sdk; world lifecycle-export { export gavel:plugin/lifecycle@0.1.0; }",
        world: "gavel:sdk/lifecycle-export",
        pub_export_macro: true,
        export_macro_name: "__export_lifecycle",
        default_bindings_module: "gavel_sdk::bindings::lifecycle",
    });

    pub use exports::gavel::plugin::lifecycle::*;
}

/// What a reward exports.
pub mod reward {
    wit_bindgen::generate!({
        path: "wit",
        inline: "package gavel:sdk; world reward-export { export gavel:plugin/reward@0.1.0; }",
        world: "gavel:sdk/reward-export",
        with: {
            "gavel:plugin/types@0.1.0": crate::bindings::gavel::plugin::types,
            "gavel:plugin/samples@0.1.0": crate::bindings::gavel::plugin::samples,
            "gavel:plugin/references@0.1.0": crate::bindings::gavel::plugin::references,
        },
        pub_export_macro: true,
        export_macro_name: "__export_reward",
        default_bindings_module: "gavel_sdk::bindings::reward",
    });

    pub use exports::gavel::plugin::reward::*;
}

/// What a judger exports.
pub mod judger {
    wit_bindgen::generate!({
        path: "wit",
        inline: "package gavel:sdk; world judger-export { export gavel:plugin/judger@0.1.0; }",
        world: "gavel:sdk/judger-export",
        with: {
            "gavel:plugin/types@0.1.0": crate::bindings::gavel::plugin::types,
            "gavel:plugin/samples@0.1.0": crate::bindings::gavel::plugin::samples,
            "gavel:plugin/references@0.1.0": crate::bindings::gavel::plugin::references,
        },
        pub_export_macro: true,
        export_macro_name: "__export_judger",
        default_bindings_module: "gavel_sdk::bindings::judger",
    });

    pub use exports::gavel::plugin::judger::*;
}

/// What a taskset exports.
pub mod taskset {
    wit_bindgen::generate!({
        path: "wit",
        inline: "package gavel:sdk; world taskset-export { export gavel:plugin/taskset@0.1.0; }",
        world: "gavel:sdk/taskset-export",
        with: {
            "gavel:plugin/types@0.1.0": crate::bindings::gavel::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "__export_taskset",
        default_bindings_module: "gavel_sdk::bindings::taskset",
    });

    pub use exports::gavel::plugin::taskset::*;
}
