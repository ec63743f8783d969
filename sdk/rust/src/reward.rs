//! Rewards: rules that score one sample.

use crate::{Failure, Info, Reference, Sample, Verdict};
use serde::de::DeserializeOwned;

/// A rule that scores one sample. See the crate's documentation for a whole
/// example.
pub trait Reward: Sized + 'static {
    /// The keys of `[[reward]].params` in a run's configuration; [`NoParams`](crate::NoParams) if there are none.
    /// Derive `Deserialize` with `#[serde(deny_unknown_fields)]`, so that a misspelt key is an error.
    type Params: DeserializeOwned;

    /// Creates the plugin, once, before any call. Costly work that is the same
    /// for every sample, such as compiling a pattern, belongs here.
    ///
    /// # Errors
    /// What is wrong with the parameters, in one sentence for the user.
    fn new(params: Self::Params) -> Result<Self, String>;

    /// The plugin's name, version and promises.
    fn info(&self) -> Info;

    /// Scores one sample.
    ///
    /// # Errors
    /// With a [`Failure`], there is no score; its kind names who is at fault.
    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure>;
}

/// Makes a type that implements [`Reward`] the component's reward. Use it once
/// in a crate of the type `cdylib`.
#[macro_export]
macro_rules! export_reward {
    ($reward:ty) => {
        const _: () = {
            $crate::__export_plugin!($reward as $crate::Reward);

            impl $crate::bindings::reward::Guest for Component {
                fn score(
                    sample: &$crate::Sample,
                    reference: &$crate::Reference,
                ) -> ::std::result::Result<$crate::Verdict, $crate::Failure> {
                    INSTANCE.with(|instance| $crate::Reward::score(instance.get()?, sample, reference))
                }
            }

            #[cfg(target_family = "wasm")]
    $crate::bindings::reward::__export_reward!(Component with_types_in $crate::bindings::reward);

            #[cfg(not(target_family = "wasm"))]
            const _: () = {
                let _ = <Component as $crate::bindings::reward::Guest>::score;
            };
        };
    };
}
