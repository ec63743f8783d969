//! The contract in `wit/`, as Rust. The types behind its resources are named
//! here and know nothing of these bindings: the files of `imports` know both.

wasmtime::component::bindgen!({
    path: "../../wit",
    // All that a component of the scoring family may import and export; each exports some of it.
    inline: "
        package gavel:host;

        world scorers {
            import gavel:plugin/chat@0.1.0;
            import gavel:plugin/exec@0.1.0;
            export gavel:plugin/lifecycle@0.1.0;
            export gavel:plugin/reward@0.1.0;
            export gavel:plugin/judger@0.1.0;
            export gavel:plugin/taskset@0.1.0;
        }
    ",
    world: "gavel:host/scorers",
    imports: {
        "gavel:plugin/chat.complete": async | trappable,
        "gavel:plugin/exec.run": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: {
        "gavel:plugin/types.media": crate::resources::MediaRef,
        "gavel:plugin/samples.sample": crate::resources::SampleRef,
        "gavel:plugin/samples.trajectory": crate::resources::TrajectoryRef,
        "gavel:plugin/references.reference": crate::resources::ReferenceRef,
        "gavel:plugin/chat.reply": crate::grant::ChatReply,
    },
});
