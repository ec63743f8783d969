//! The contract in `wit/`, as Rust. It names the types behind the resources,
//! which do not depend on these bindings; the files of `imports` use both.

#![allow(missing_docs, reason = "generated from wit/")]

pub mod v0_1;

wasmtime::component::bindgen!({
    path: "../../wit",
    // All that a component may import and export; each exports some of it.
    inline: "
        package gavel:host;

        world plugins {
            import gavel:plugin/chat@0.2.0;
            import gavel:plugin/exec@0.2.0;
            import gavel:plugin/reward-model@0.2.0;
            import gavel:plugin/policy@0.2.0;
            import gavel:plugin/tools@0.2.0;
            export gavel:plugin/lifecycle@0.2.0;
            export gavel:plugin/reward@0.2.0;
            export gavel:plugin/judger@0.2.0;
            export gavel:plugin/taskset@0.2.0;
            export gavel:plugin/tool@0.2.0;
            export gavel:plugin/agent@0.2.0;
            export gavel:plugin/advantage@0.2.0;
            export gavel:plugin/sampler@0.2.0;
        }
    ",
    world: "gavel:host/plugins",
    imports: {
        "gavel:plugin/chat.complete": async | trappable,
        "gavel:plugin/exec.run": async | trappable,
        "gavel:plugin/reward-model.score": async | trappable,
        "gavel:plugin/reward-model.score-steps": async | trappable,
        "gavel:plugin/policy.generate": async | trappable,
        "gavel:plugin/tools.call": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: {
        "gavel:plugin/types.media": crate::imports::MediaRef,
        "gavel:plugin/samples.sample": crate::imports::SampleRef,
        "gavel:plugin/samples.trajectory": crate::imports::TrajectoryRef,
        "gavel:plugin/references.reference": crate::imports::ReferenceRef,
        "gavel:plugin/chat.reply": crate::grant::ChatReply,
        "gavel:plugin/tasks.task": crate::imports::TaskRef,
        "gavel:plugin/policy.conversation": crate::imports::ConversationRef,
        "gavel:plugin/policy.turn": crate::episode::AgentTurn,
    },
});
