//! What was being done when memory ran out, and which setting would help.

use std::fmt;

/// The work during which memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A model is read or created.
    Loading,
    /// The engine draws a token for each row and computes prompts.
    Rollout {
        /// The rows of the step.
        rows: usize,
        /// The prompt tokens of the step, padding included.
        prompts: usize,
    },
    /// The engine's keys and values need more room.
    Cache {
        /// Rows.
        rows: usize,
        /// The tokens that each row needs room for.
        tokens: usize,
    },
    /// A micro-batch's forward and backward pass.
    MicroBatch {
        /// Its tokens.
        tokens: usize,
    },
    /// The optimiser is set up, or takes a step.
    Optimizer,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loading => f.write_str("while the model was loaded"),
            Self::Rollout { rows, prompts } => write!(
                f,
                "in rollout, while a token was drawn for each of {rows} responses and {prompts} tokens of prompts were computed"
            ),
            Self::Cache { rows, tokens } => {
                write!(f, "in rollout, while room was made for keys and values of {rows} responses of {tokens} tokens")
            }
            Self::MicroBatch { tokens } => {
                write!(f, "in training, while a micro-batch of {tokens} tokens went forward and backward")
            }
            Self::Optimizer => f.write_str("in training, in the optimiser"),
        }
    }
}

impl Phase {
    /// What to do about it.
    fn hint(self) -> &'static str {
        match self {
            Self::Loading => {
                "load it in bfloat16 (model.dtype of a run, --dtype elsewhere), or use a device with more memory"
            }
            Self::Rollout { .. } | Self::Cache { .. } => {
                "lower rollout.max_batch (--max-batch), the responses that are written together, or bound keys and values with rollout.cache_memory (--cache-memory)"
            }
            Self::MicroBatch { .. } => {
                "lower train.max_tokens_per_micro_batch, or set train.gradient_checkpointing if it is not"
            }
            Self::Optimizer => "train adapters of a checkpoint with [model.lora], or use a device with more memory",
        }
    }
}

/// The message of [`OutOfMemory`](crate::PolicyError::OutOfMemory) after its
/// first words.
pub(crate) fn explain(phase: Option<Phase>, what: &str) -> String {
    match phase {
        Some(phase) => format!(" {phase}: {what}\nhint: {}", phase.hint()),
        None => format!(": {what}"),
    }
}

/// libtorch's message about memory that ran out, without the place in its
/// sources; `None` if `message` is about something else.
pub(crate) fn recognise(message: &str) -> Option<String> {
    const SAYS: [&str; 6] = [
        "out of memory",
        "can't allocate memory",
        "not enough memory",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "std::bad_alloc",
        "bad allocation",
    ];
    SAYS.iter().any(|says| message.contains(says)).then(|| {
        let start = message.find("CUDA out of memory").or(message.find("DefaultCPUAllocator"));
        let message = &message[start.unwrap_or(0)..];
        // What follows is about settings of libtorch's that Gavel makes.
        let end = message.find(" If reserved but unallocated memory is large");
        message[..end.unwrap_or(message.len())].to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::PolicyError;
    use tch::TchError;

    /// The message of libtorch 2.11, with the backtrace that follows.
    const CPU: &str = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4194304000 bytes. Error code 12 (Cannot allocate memory)\nframe #0: c10::ThrowEnforceNotMet";
    const CUDA: &str = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 3.00 GiB is free. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF.\nException raised from malloc";

    #[test]
    fn what_libtorch_says_is_told_with_its_part_and_a_hint() {
        let told = |message: &str, phase| PolicyError::from(TchError::Torch(message.into())).during(phase).to_string();
        assert_eq!(
            told(CPU, Phase::MicroBatch { tokens: 16384 }),
            "out of memory in training, while a micro-batch of 16384 tokens went forward and backward: DefaultCPUAllocator: can't allocate memory: you tried to allocate 4194304000 bytes. Error code 12 (Cannot allocate memory)\nhint: lower train.max_tokens_per_micro_batch, or set train.gradient_checkpointing if it is not"
        );
        let cuda = told(CUDA, Phase::Cache { rows: 256, tokens: 1024 });
        assert!(cuda.starts_with("out of memory in rollout, while room was made for keys and values of 256 responses of 1024 tokens: CUDA out of memory. Tried to allocate 20.00 GiB."), "{cuda}");
        assert!(cuda.contains("\nhint: lower rollout.max_batch") && !cuda.contains("Exception"), "{cuda}");
    }

    #[test]
    fn the_innermost_part_is_told_and_other_errors_are_left_alone() {
        let error = PolicyError::from(TchError::Torch(CPU.into()));
        let told = error.during(Phase::Rollout { rows: 3, prompts: 0 }).during(Phase::Loading).to_string();
        assert!(told.contains("for each of 3 responses"), "{told}");
        let other = PolicyError::from(TchError::Torch("shapes do not match".into())).during(Phase::Loading);
        assert_eq!(other.to_string(), "libtorch: shapes do not match");
    }

    #[test]
    fn what_libtorch_really_says_is_recognised() {
        // More than any machine can address.
        let error = tch::Tensor::f_zeros([1 << 50], (tch::Kind::Float, tch::Device::Cpu)).unwrap_err();
        let error = PolicyError::from(error);
        assert!(matches!(error, PolicyError::OutOfMemory { phase: None, .. }), "{error}");
    }
}
