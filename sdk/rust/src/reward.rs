//! A reward as one type, and how it becomes the exports of a component.

use crate::bindings::exports::gavel::plugin::lifecycle::Info;
use crate::bindings::gavel::plugin::{
    references::Reference,
    samples::Sample,
    types::{Failure, Verdict},
};
use serde::de::DeserializeOwned;
use std::cell::OnceCell;

/// A rule that scores one sample. See the crate's documentation for a whole
/// example.
pub trait Reward: Sized + 'static {
    /// What the run's configuration may say under `[[reward]].params`;
    /// [`NoParams`] where there is nothing to say. Derive `Deserialize` with
    /// `#[serde(deny_unknown_fields)]`, so that a misspelt key is an error.
    type Params: DeserializeOwned;

    /// Made once, before any call. Whatever is costly and the same for every
    /// sample (compiling a pattern, say) belongs here.
    ///
    /// # Errors
    /// What is wrong with the parameters, in one sentence for the user.
    fn new(params: Self::Params) -> Result<Self, String>;

    /// The plugin's name, version and promises.
    fn info(&self) -> Info;

    /// Scores one sample.
    ///
    /// # Errors
    /// A [`Failure`] says that there is no score, and whose fault that is.
    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure>;
}

/// The parameters of a reward that has none: any key is refused.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// Makes a type that implements [`Reward`] the component's reward. Use it once
/// in a crate of the type `cdylib`.
#[macro_export]
macro_rules! export_reward {
    ($reward:ty) => {
        const _: () = {
            ::std::thread_local! {
                static INSTANCE: $crate::__private::Instance<$reward> =
                    const { $crate::__private::Instance::new() };
            }

            struct Component;

            impl $crate::__private::lifecycle::Guest for Component {
                fn init(
                    params_json: ::std::string::String,
                ) -> ::std::result::Result<$crate::Info, ::std::string::String> {
                    INSTANCE.with(|instance| instance.init(&params_json))
                }
            }

            impl $crate::__private::reward::Guest for Component {
                fn score(
                    sample: &$crate::Sample,
                    reference: &$crate::Reference,
                ) -> ::std::result::Result<$crate::Verdict, $crate::Failure> {
                    INSTANCE.with(|instance| instance.score(sample, reference))
                }
            }

            #[cfg(target_family = "wasm")]
    $crate::bindings::__export_reward_plugin!(Component with_types_in $crate::bindings);

            // Elsewhere there is nothing to export to, yet the reward is in use.
            #[cfg(not(target_family = "wasm"))]
            const _: () = {
                let _ = <Component as $crate::__private::lifecycle::Guest>::init;
                let _ = <Component as $crate::__private::reward::Guest>::score;
            };
        };
    };
}

/// The reward of a component, absent until `init`.
#[doc(hidden)]
pub struct Instance<R>(OnceCell<R>);

impl<R: Reward> Instance<R> {
    #[allow(clippy::new_without_default, reason = "made in a const context only")]
    pub const fn new() -> Self {
        Self(OnceCell::new())
    }

    pub fn init(&self, params_json: &str) -> Result<Info, String> {
        let reward = R::new(parse_params(params_json)?)?;
        let info = reward.info();
        self.0.set(reward).map_err(|_| "`init` was called twice".to_owned())?;
        Ok(info)
    }

    pub fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        match self.0.get() {
            Some(reward) => reward.score(sample, reference),
            None => Err(Failure::internal("`score` was called before `init`")),
        }
    }
}

fn parse_params<P: DeserializeOwned>(json: &str) -> Result<P, String> {
    // In two steps, so that messages do not speak of lines and columns: the user wrote TOML.
    let params: serde_json::Value =
        serde_json::from_str(json).map_err(|error| format!("the parameters are not JSON: {error}"))?;
    if !params.is_object() {
        return Err("the parameters must be a JSON object".into());
    }
    serde_path_to_error::deserialize(params).map_err(|error| match error.path().to_string().as_str() {
        "." => format!("parameters: {}", error.inner()),
        path => format!("parameter `{path}`: {}", error.inner()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Params {
        prefix: String,
        limits: Option<Limits>,
    }

    #[derive(serde::Deserialize, Debug)]
    struct Limits {
        bytes: u32,
    }

    struct Prefix(Params);

    impl Reward for Prefix {
        type Params = Params;

        fn new(params: Params) -> Result<Self, String> {
            if params.prefix.is_empty() { Err("`prefix` is empty".into()) } else { Ok(Self(params)) }
        }

        fn info(&self) -> Info {
            Info::new(&self.0.prefix, "1").pure().score_range(-1.0, 1.0)
        }

        fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
            Ok(Verdict::abstain("a test"))
        }
    }

    #[test]
    fn init_gives_the_info_of_the_reward_it_made() {
        let instance = Instance::<Prefix>::new();
        let info = instance.init(r#"{"prefix":"P","limits":{"bytes":3}}"#).unwrap();
        assert_eq!((info.name.as_str(), info.version.as_str(), info.pure), ("P", "1", true));
        let range = info.score_range.unwrap();
        assert_eq!((range.min, range.max), (-1.0, 1.0));
        let limits = instance.0.get().unwrap().0.limits.as_ref().unwrap();
        assert_eq!(limits.bytes, 3);
        assert_eq!(instance.init(r#"{"prefix":"P"}"#).unwrap_err(), "`init` was called twice");
    }

    #[test]
    fn wrong_parameters_are_named() {
        let error = |json: &str| Instance::<Prefix>::new().init(json).unwrap_err();
        assert_eq!(error(r#"{"prefix":""}"#), "`prefix` is empty");
        assert_eq!(error("{}"), "parameters: missing field `prefix`");
        assert_eq!(error("[]"), "the parameters must be a JSON object");
        assert!(error("{").starts_with("the parameters are not JSON: "));
        assert!(error(r#"{"prefx":"P"}"#).contains("unknown field `prefx`, expected `prefix` or `limits`"));
        let nested = error(r#"{"prefix":"P","limits":{"bytes":"many"}}"#);
        assert_eq!(nested, "parameter `limits.bytes`: invalid type: string \"many\", expected u32");
    }

    #[test]
    fn a_reward_without_parameters_refuses_any() {
        assert!(parse_params::<NoParams>("{}").is_ok());
        let error = parse_params::<NoParams>(r#"{"x":1}"#).unwrap_err();
        assert!(error.contains("unknown field `x`"), "{error}");
    }
}
