//! The state of a component between `init` and its calls.

use crate::{Failure, Info};
use serde::de::DeserializeOwned;
use std::cell::OnceCell;

/// The parameters of a plugin without parameters: any key is refused.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// The plugin of a component; absent until `init`.
#[doc(hidden)]
pub struct Instance<T>(OnceCell<T>);

impl<T> Instance<T> {
    #[allow(clippy::new_without_default, reason = "made in a const context only")]
    pub const fn new() -> Self {
        Self(OnceCell::new())
    }

    pub fn init<P: DeserializeOwned>(
        &self,
        params_json: &str,
        new: impl FnOnce(P) -> Result<T, String>,
        info: impl FnOnce(&T) -> Info,
    ) -> Result<Info, String> {
        let plugin = new(parse_params(params_json)?)?;
        let info = info(&plugin);
        self.0.set(plugin).map_err(|_| "`init` was called twice".to_owned())?;
        Ok(info)
    }

    pub fn get(&self) -> Result<&T, Failure> {
        self.0.get().ok_or_else(|| Failure::internal("a plugin was called before `init`"))
    }
}

fn parse_params<P: DeserializeOwned>(json: &str) -> Result<P, String> {
    // In two steps, so that messages have no lines and columns: the user wrote TOML, not JSON.
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

/// Makes a type the plugin of its component: the common part of all kinds of
/// plugins.
#[doc(hidden)]
#[macro_export]
macro_rules! __export_plugin {
    ($plugin:ty as $kind:path) => {
        ::std::thread_local! {
            static INSTANCE: $crate::__private::Instance<$plugin> =
                const { $crate::__private::Instance::new() };
        }

        struct Component;

        impl $crate::bindings::lifecycle::Guest for Component {
            fn init(
                params_json: ::std::string::String,
            ) -> ::std::result::Result<$crate::Info, ::std::string::String> {
                INSTANCE.with(|instance| {
                    instance.init(&params_json, <$plugin as $kind>::new, <$plugin as $kind>::info)
                })
            }
        }

        #[cfg(target_family = "wasm")]
$crate::bindings::lifecycle::__export_lifecycle!(Component with_types_in $crate::bindings::lifecycle);

        // On other targets nothing is exported, but the plugin still counts as
        // used.
        #[cfg(not(target_family = "wasm"))]
        const _: () = {
            let _ = <Component as $crate::bindings::lifecycle::Guest>::init;
        };
    };
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

    fn init(instance: &Instance<Prefix>, json: &str) -> Result<Info, String> {
        let new = |params: Params| {
            if params.prefix.is_empty() { Err("`prefix` is empty".into()) } else { Ok(Prefix(params)) }
        };
        instance.init(json, new, |plugin| Info::new(&plugin.0.prefix, "1").pure().score_range(-1.0, 1.0))
    }

    #[test]
    fn init_gives_the_info_of_the_reward_it_made() {
        let instance = Instance::<Prefix>::new();
        let info = init(&instance, r#"{"prefix":"P","limits":{"bytes":3}}"#).unwrap();
        assert_eq!((info.name.as_str(), info.version.as_str(), info.pure), ("P", "1", true));
        let range = info.score_range.unwrap();
        assert_eq!((range.min, range.max), (-1.0, 1.0));
        let limits = instance.0.get().unwrap().0.limits.as_ref().unwrap();
        assert_eq!(limits.bytes, 3);
        assert_eq!(init(&instance, r#"{"prefix":"P"}"#).unwrap_err(), "`init` was called twice");
    }

    #[test]
    fn wrong_parameters_are_named() {
        let error = |json: &str| init(&Instance::new(), json).unwrap_err();
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
