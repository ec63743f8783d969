//! The contract in `wit/`, as Rust.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "reward-plugin",
    imports: { default: trappable },
    exports: { default: async },
    with: {
        "gavel:plugin/types.media": crate::resources::MediaRef,
        "gavel:plugin/samples.sample": crate::resources::SampleRef,
        "gavel:plugin/samples.trajectory": crate::resources::TrajectoryRef,
        "gavel:plugin/references.reference": crate::resources::ReferenceRef,
    },
});
