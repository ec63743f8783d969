//! Circles of files that are allowed.

/// A circle of files.
pub struct Circle {
    /// The folder of the crate.
    pub folder: &'static str,
    /// Its files, in the crate's `src`.
    pub files: &'static [&'static str],
}

/// Circles that have to stay, each with the reason: there are none.
pub const ALLOWED: &[(Circle, &str)] = &[];

/// Circles that were there before they were checked for, and are still to be
/// opened: the list only gets shorter.
pub const PRESENT: &[Circle] = &[
    Circle { folder: "host/cli", files: &["bench/decode.rs", "bench/mod.rs", "bench/prefill.rs", "bench/train.rs"] },
    Circle {
        folder: "host/cli",
        files: &[
            "main.rs",
            "plugin/bench.rs",
            "plugin/build.rs",
            "plugin/check.rs",
            "plugin/diff.rs",
            "plugin/mod.rs",
            "plugin/subject.rs",
            "plugin/test.rs",
            "plugin/watch.rs",
        ],
    },
    Circle { folder: "host/pipeline", files: &["checkpoints.rs", "checkpoints/sums.rs"] },
    Circle {
        folder: "host/pipeline",
        files: &[
            "config/dataset.rs",
            "config/load.rs",
            "config/loading.rs",
            "config/mod.rs",
            "config/reward.rs",
            "config/tables.rs",
        ],
    },
    Circle { folder: "host/pipeline", files: &["error.rs", "run_lock.rs"] },
    Circle { folder: "host/pipeline", files: &["memory.rs", "memory/plan.rs", "setup.rs"] },
    Circle {
        folder: "host/policy",
        files: &[
            "config/mod.rs",
            "folder.rs",
            "head.rs",
            "init.rs",
            "layer.rs",
            "lora/adapter_config.rs",
            "lora/mod.rs",
            "model.rs",
            "norm.rs",
            "rotary.rs",
        ],
    },
    Circle { folder: "host/policy", files: &["device.rs", "device/memory.rs"] },
    Circle { folder: "host/policy", files: &["engine/admission.rs", "engine/mod.rs"] },
    Circle { folder: "host/policy", files: &["forward.rs", "packed/bucket.rs", "packed/cut.rs", "packed/mod.rs"] },
    Circle { folder: "host/policy", files: &["linear.rs", "lora/adapter.rs"] },
    Circle { folder: "host/scoring", files: &["group.rs", "round.rs", "scorer.rs"] },
    Circle {
        folder: "host/scoring",
        files: &[
            "recording/lineup.rs",
            "recording/mod.rs",
            "recording/record.rs",
            "recording/samples.rs",
            "recording/tasks.rs",
            "recording/trust.rs",
        ],
    },
    Circle { folder: "host/serve", files: &["completion.rs", "generator.rs"] },
    Circle { folder: "host/serve", files: &["openai/chat.rs", "openai/completions.rs", "openai/mod.rs"] },
    Circle { folder: "host/text", files: &["stream.rs", "tokenizer.rs"] },
    Circle { folder: "host/text", files: &["template/json.rs", "template/methods.rs", "template/python.rs"] },
    Circle { folder: "host/text", files: &["tool_calls.rs", "tool_calls/json.rs", "tool_calls/xml.rs"] },
    Circle {
        folder: "host/train",
        files: &["error.rs", "optimizer/masters.rs", "optimizer/mod.rs", "optimizer/state.rs"],
    },
];
