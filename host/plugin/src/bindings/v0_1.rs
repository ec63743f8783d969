//! The exports of the frozen contract 0.1 in `wit/0.1/`. Its imports are in 0.2
//! as they were, except for the types here; so both versions share their types
//! and the host's side of each function.

wasmtime::component::bindgen!({
    path: "../../wit/0.1",
    inline: "
        package gavel:host;

        world plugins {
            export gavel:plugin/lifecycle@0.1.0;
            export gavel:plugin/reward@0.1.0;
            export gavel:plugin/judger@0.1.0;
            export gavel:plugin/taskset@0.1.0;
            export gavel:plugin/tool@0.1.0;
            export gavel:plugin/agent@0.1.0;
        }
    ",
    world: "gavel:host/plugins",
    exports: { default: async },
    with: {
        "gavel:plugin/types": crate::bindings::v0_1::types,
        "gavel:plugin/samples": crate::bindings::gavel::plugin::samples,
        "gavel:plugin/references": crate::bindings::gavel::plugin::references,
        "gavel:plugin/tasks": crate::bindings::gavel::plugin::tasks,
    },
});

/// The types of 0.1, in which a score has no payload.
pub mod types {
    pub use crate::bindings::gavel::plugin::types::*;

    use crate::bindings::gavel::plugin::types as current;
    use wasmtime::component::{ComponentType, Lift, Lower};

    /// A score of 0.1.
    #[derive(ComponentType, Lift, Lower, Clone, Debug)]
    #[component(record)]
    pub struct Score {
        value: f64,
        metrics: Vec<Metric>,
        credit: Vec<Credit>,
        note: Option<String>,
    }

    /// A verdict of 0.1.
    #[derive(ComponentType, Lift, Lower, Clone, Debug)]
    #[component(variant)]
    pub enum Verdict {
        /// The plugin gave a score.
        #[component(name = "scored")]
        Scored(Score),
        /// The plugin declined, for this reason.
        #[component(name = "abstained")]
        Abstained(String),
    }

    /// The verdict of another reward, as 0.1 has it.
    #[derive(ComponentType, Lift, Lower, Clone, Debug)]
    #[component(variant)]
    pub enum PriorVerdict {
        /// It gave a score.
        #[component(name = "scored")]
        Scored(Score),
        /// It declined, for this reason.
        #[component(name = "abstained")]
        Abstained(String),
        /// It was not called.
        #[component(name = "not-called")]
        NotCalled,
        /// It was called and gave no verdict.
        #[component(name = "no-verdict")]
        NoVerdict,
    }

    impl From<Verdict> for current::Verdict {
        fn from(verdict: Verdict) -> Self {
            match verdict {
                Verdict::Scored(Score { value, metrics, credit, note }) => {
                    Self::Scored(current::Score { value, metrics, credit, note, payload: None })
                }
                Verdict::Abstained(reason) => Self::Abstained(reason),
            }
        }
    }

    impl From<current::PriorVerdict> for PriorVerdict {
        fn from(verdict: current::PriorVerdict) -> Self {
            match verdict {
                current::PriorVerdict::Scored(current::Score { value, metrics, credit, note, payload: _ }) => {
                    Self::Scored(Score { value, metrics, credit, note })
                }
                current::PriorVerdict::Abstained(reason) => Self::Abstained(reason),
                current::PriorVerdict::NotCalled => Self::NotCalled,
                current::PriorVerdict::NoVerdict => Self::NoVerdict,
            }
        }
    }
}

mod answers {
    use super::exports::gavel::plugin::lifecycle;
    use crate::bindings::exports::gavel::plugin::{agent, lifecycle as current};

    impl From<lifecycle::Info> for current::Info {
        fn from(info: lifecycle::Info) -> Self {
            let lifecycle::Info { name, version, pure, score_range } = info;
            let score_range = score_range.map(|range| current::ScoreRange { min: range.min, max: range.max });
            Self { name, version, pure, score_range }
        }
    }

    impl From<String> for agent::Answer {
        fn from(response: String) -> Self {
            Self { response, extra: None }
        }
    }
}
