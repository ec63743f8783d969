//! Everything of a hostile reward except its attack. A guest writes one
//! function and chooses with [`on_score!`], [`on_judge!`] or [`on_init!`] when
//! it runs.

pub use gavel_sdk::{
    Advantage, ContentPart, Credit, Failure, Info, Judger, NoParams, Reference, Reward, Sample, Sampler, Score,
    Verdict, export_advantage, export_judger, export_reward, export_sampler,
};
pub use gavel_sdk::{advantage, chat, exec, sampler};

/// The values that an attack may return from `score`.
pub trait Answer {
    /// The answer in the form of the contract.
    fn answer(self) -> Result<Verdict, Failure>;
}

impl Answer for f64 {
    fn answer(self) -> Result<Verdict, Failure> {
        Score::new(self).answer()
    }
}

impl Answer for bool {
    fn answer(self) -> Result<Verdict, Failure> {
        f64::from(self).answer()
    }
}

impl Answer for Score {
    fn answer(self) -> Result<Verdict, Failure> {
        Ok(self.into())
    }
}

impl Answer for Result<Verdict, Failure> {
    fn answer(self) -> Result<Verdict, Failure> {
        self
    }
}

/// Scores 1 if no attempt succeeded, else 0 with a note of those that did.
pub fn refused<'a>(attempts: impl IntoIterator<Item = (&'a str, bool)>) -> Score {
    let done: Vec<&str> = attempts.into_iter().filter(|(_, done)| *done).map(|(name, _)| name).collect();
    if done.is_empty() { Score::new(1.0) } else { Score::new(0.0).note(format!("succeeded: {}", done.join(", "))) }
}

/// Makes a function `fn(&Sample, &Reference) -> impl Answer` the component's
/// `score`.
#[macro_export]
macro_rules! on_score {
    ($attack:path) => {
        $crate::on_score!($attack, $crate::Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")));
    };
    ($attack:path, $info:expr) => {
        $crate::__reward!($info, || Ok(()), |sample, reference| $crate::Answer::answer($attack(sample, reference)));
    };
}

/// Makes a function `fn(&[Sample]) -> Vec<Verdict>` the component's `judge`.
#[macro_export]
macro_rules! on_judge {
    ($attack:path) => {
        struct Attack;

        impl $crate::Judger for Attack {
            type Params = $crate::NoParams;

            fn new(_: $crate::NoParams) -> ::std::result::Result<Self, ::std::string::String> {
                ::std::result::Result::Ok(Self)
            }

            fn info(&self) -> $crate::Info {
                $crate::Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            }

            fn judge(
                &self,
                samples: &[$crate::Sample],
                _: &$crate::Reference,
            ) -> ::std::result::Result<::std::vec::Vec<$crate::Verdict>, $crate::Failure> {
                ::std::result::Result::Ok($attack(samples))
            }
        }

        $crate::export_judger!(Attack);
    };
}

/// Makes a function `fn() -> Result<(), String>` the component's `init`. If it
/// succeeds, every sample scores 1.
#[macro_export]
macro_rules! on_init {
    ($attack:path) => {
        $crate::__reward!($crate::Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")), $attack, |_, _| {
            $crate::Answer::answer(1.0)
        });
    };
}

/// The common part of the macros.
#[doc(hidden)]
#[macro_export]
macro_rules! __reward {
    ($info:expr, $init:expr, $score:expr) => {
        struct Attack;

        impl $crate::Reward for Attack {
            type Params = $crate::NoParams;

            fn new(_: $crate::NoParams) -> Result<Self, String> {
                let init: fn() -> Result<(), String> = $init;
                init().map(|()| Self)
            }

            fn info(&self) -> $crate::Info {
                $info
            }

            fn score(
                &self,
                sample: &$crate::Sample,
                reference: &$crate::Reference,
            ) -> Result<$crate::Verdict, $crate::Failure> {
                let score: fn(&$crate::Sample, &$crate::Reference) -> Result<$crate::Verdict, $crate::Failure> = $score;
                score(sample, reference)
            }
        }

        $crate::export_reward!(Attack);
    };
}
