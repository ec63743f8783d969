//! Judgers: rules that compare the samples of a group.

use crate::{Failure, Info, Reference, Sample, Verdict};
use serde::de::DeserializeOwned;

/// A rule that judges the samples of a group, which are attempts at one task.
///
/// ```
/// use gavel_sdk::{Failure, Info, Judger, NoParams, Reference, Sample, Score, Verdict};
///
/// /// Scores 1 for the shortest response of a group, 0 for the others.
/// struct Shortest;
///
/// impl Judger for Shortest {
///     type Params = NoParams;
///
///     fn new(_: NoParams) -> Result<Self, String> {
///         Ok(Self)
///     }
///
///     fn info(&self) -> Info {
///         Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
///     }
///
///     fn judge(&self, samples: &[Sample], _: &Reference) -> Result<Vec<Verdict>, Failure> {
///         let lengths: Vec<usize> = samples.iter().map(|sample| sample.response().len()).collect();
///         let shortest = lengths.iter().min();
///         let score = |length| Score::new(f64::from(Some(length) == shortest)).into();
///         Ok(lengths.iter().map(score).collect())
///     }
/// }
///
/// gavel_sdk::export_judger!(Shortest);
/// # fn main() {}
/// ```
pub trait Judger: Sized + 'static {
    /// The keys of `[[reward]].params` in a run's configuration;
    /// [`NoParams`](crate::NoParams) if there are none.
    type Params: DeserializeOwned;

    /// Creates the plugin, once, before any call.
    ///
    /// # Errors
    /// What is wrong with the parameters, in one sentence for the user.
    fn new(params: Self::Params) -> Result<Self, String>;

    /// The plugin's name, version and promises.
    fn info(&self) -> Info;

    /// Judges a group. Returns one verdict for each sample, in order.
    ///
    /// # Errors
    /// With a [`Failure`], no sample of the group has a score; its kind names
    /// who is at fault.
    fn judge(&self, samples: &[Sample], reference: &Reference) -> Result<Vec<Verdict>, Failure>;
}

/// Makes a type that implements [`Judger`] the component's judger. Use it once
/// in a crate of the type `cdylib`.
#[macro_export]
macro_rules! export_judger {
    ($judger:ty) => {
        const _: () = {
            $crate::__export_plugin!($judger as $crate::Judger);

            impl $crate::bindings::judger::Guest for Component {
                fn judge(
                    samples: ::std::vec::Vec<$crate::Sample>,
                    reference: &$crate::Reference,
                ) -> ::std::result::Result<::std::vec::Vec<$crate::Verdict>, $crate::Failure> {
                    INSTANCE.with(|instance| $crate::Judger::judge(instance.get()?, &samples, reference))
                }
            }

            #[cfg(target_family = "wasm")]
    $crate::bindings::judger::__export_judger!(Component with_types_in $crate::bindings::judger);

            #[cfg(not(target_family = "wasm"))]
            const _: () = {
                let _ = <Component as $crate::bindings::judger::Guest>::judge;
            };
        };
    };
}
