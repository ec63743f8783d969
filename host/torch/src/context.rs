//! Settings that libtorch has once for the whole process (`shim/context.cpp`).

unsafe extern "C" {
    fn gavel_context_for_gpus();
    #[cfg(test)]
    fn gavel_context_has_cudnn_attention() -> bool;
    fn gavel_context_is_deterministic() -> bool;
    fn gavel_context_set_deterministic(on: bool);
}

/// Prepares libtorch for the shapes and the precision of language models on GPUs: no attention of cuDNN, which builds a
/// plan for each shape, and no sums in 16 bits. Products of 32 bits keep 32 bits: TF32 is off unless the variable
/// `TORCH_ALLOW_TF32_CUBLAS_OVERRIDE` sets it.
pub fn prepare_for_gpus() {
    // SAFETY: it sets two numbers, which libtorch reads in each operation.
    unsafe { gavel_context_for_gpus() }
}

/// While it lives, operations give the same bits each time, or fail if they cannot. On the CPU they always do.
#[must_use = "it ends when it is dropped"]
pub struct Deterministic {
    was: bool,
}

impl Deterministic {
    /// From now on, in all threads.
    pub fn begin() -> Self {
        // SAFETY: as above.
        let was = unsafe { gavel_context_is_deterministic() };
        // SAFETY: as above.
        unsafe { gavel_context_set_deterministic(true) };
        Self { was }
    }
}

impl Drop for Deterministic {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { gavel_context_set_deterministic(self.was) }
    }
}

/// Whether operations give the same bits each time, or fail.
pub fn is_deterministic() -> bool {
    // SAFETY: as above.
    unsafe { gavel_context_is_deterministic() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind, Tensor};

    #[test]
    fn gpus_use_no_attention_of_cudnn() {
        // SAFETY: it reads a number.
        let has = || unsafe { gavel_context_has_cudnn_attention() };
        assert!(has(), "libtorch's own default has changed");
        prepare_for_gpus();
        assert!(!has());
    }

    #[test]
    fn what_is_not_deterministic_fails_only_meanwhile() {
        let counts = || {
            Tensor::zeros([3, 2], (Kind::Float, Device::Cpu)).f_put_(
                &Tensor::from_slice(&[0i64, 0]),
                &Tensor::from_slice(&[1f32, 2.0]),
                false,
            )
        };
        assert!(!is_deterministic() && counts().is_ok());
        {
            let _outer = Deterministic::begin();
            drop(Deterministic::begin());
            assert!(is_deterministic());
            let error = counts().unwrap_err().to_string();
            assert!(error.contains("does not have a deterministic implementation"), "{error}");
        }
        assert!(!is_deterministic() && counts().is_ok());
    }
}
