//! Tools: functions that the policy may call.

use crate::{Failure, Info, ToolSpec};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::cell::{RefCell, RefMut};

/// Functions that the policy may call, with a state for each trajectory.
///
/// ```
/// use gavel_sdk::{Failure, Info, NoParams, Tool, ToolSpec};
/// use serde_json::{Map, Value, json};
///
/// /// Counts up, in each trajectory from 0.
/// struct Counter;
///
/// impl Tool for Counter {
///     type Params = NoParams;
///     type State = u64;
///
///     fn new(_: NoParams) -> Result<Self, String> {
///         Ok(Self)
///     }
///
///     fn info(&self) -> Info {
///         Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
///     }
///
///     fn specs(&self) -> Vec<ToolSpec> {
///         let by = json!({"type": "integer", "minimum": 1, "description": "How far to count"});
///         let schema = json!({"type": "object", "properties": {"by": by}, "required": ["by"]});
///         vec![ToolSpec::new("count", "Counts up and returns the number.", schema)]
///     }
///
///     fn open(&self, _settings: Map<String, Value>) -> Result<u64, Failure> {
///         Ok(0)
///     }
///
///     fn call(&self, state: &mut u64, _name: &str, arguments: Map<String, Value>) -> Result<String, Failure> {
///         *state += arguments["by"].as_u64().ok_or_else(|| Failure::invalid_input("`by` is too large"))?;
///         Ok(state.to_string())
///     }
/// }
///
/// gavel_sdk::export_tool!(Counter);
/// # fn main() {}
/// ```
pub trait Tool: Sized + 'static {
    /// The keys of `[[tool]].params` in a run's configuration; [`NoParams`](crate::NoParams) if there are none.
    type Params: DeserializeOwned;

    /// The state that the calls of a trajectory share; `()` if each call stands alone.
    type State: 'static;

    /// Creates the plugin, once, before any trajectory.
    ///
    /// # Errors
    /// What is wrong with the parameters, in one sentence for the user.
    fn new(params: Self::Params) -> Result<Self, String>;

    /// The plugin's name, version and promises.
    fn info(&self) -> Info;

    /// The functions, which are the same for all trajectories.
    fn specs(&self) -> Vec<ToolSpec>;

    /// The state of a new trajectory. `settings` is what the dataset's row sets for this tool in
    /// `extra_info.tools_kwargs`; the policy does not see it.
    ///
    /// # Errors
    /// A [`Failure`] reports that the row's settings cannot be used, or what is missing.
    fn open(&self, settings: Map<String, Value>) -> Result<Self::State, Failure>;

    /// Calls the function `name`. The host has checked `arguments` against its schema. The policy reads the result.
    ///
    /// # Errors
    /// [`Failure::invalid_input`] if the policy called the function wrongly. The policy reads the text of every
    /// failure.
    fn call(&self, state: &mut Self::State, name: &str, arguments: Map<String, Value>) -> Result<String, Failure>;

    /// Reports what became of the state, after the last call of a trajectory. Rewards and judgers read it with
    /// [`Trajectory::state`](crate::Trajectory::state); the policy does not see it. A tool that declares itself pure
    /// keeps no state, and is not asked.
    ///
    /// # Errors
    /// With a [`Failure`], the sample is not scored.
    fn finish(&self, _state: &mut Self::State) -> Result<Option<Value>, Failure> {
        Ok(None)
    }
}

impl ToolSpec {
    /// A function with this JSON Schema of its arguments. The arguments are an object.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters: parameters.to_string() }
    }
}

/// The state of one trajectory, behind the contract's resource.
#[doc(hidden)]
pub struct Session<S>(RefCell<S>);

impl<S> Session<S> {
    pub fn open(settings: &str, open: impl FnOnce(Map<String, Value>) -> Result<S, Failure>) -> Result<Self, Failure> {
        Ok(Self(RefCell::new(open(object("settings", settings)?)?)))
    }

    pub fn call(
        &self,
        arguments: &str,
        call: impl FnOnce(&mut S, Map<String, Value>) -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        let arguments = object("arguments", arguments)?;
        call(&mut *self.state()?, arguments)
    }

    pub fn finish(
        &self,
        finish: impl FnOnce(&mut S) -> Result<Option<Value>, Failure>,
    ) -> Result<Option<String>, Failure> {
        Ok(finish(&mut *self.state()?)?.map(|state| state.to_string()))
    }

    fn state(&self) -> Result<RefMut<'_, S>, Failure> {
        self.0.try_borrow_mut().map_err(|_| Failure::internal("a call began before the last one ended"))
    }
}

fn object(what: &str, json: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(json).map_err(|error| Failure::invalid_input(format!("the {what} are not an object: {error}")))
}

/// Makes a type that implements [`Tool`] the component's tool. Use it once in
/// a crate of the type `cdylib`.
#[macro_export]
macro_rules! export_tool {
    ($tool:ty) => {
        const _: () = {
            $crate::__export_plugin!($tool as $crate::Tool);

            struct Session($crate::__private::Session<<$tool as $crate::Tool>::State>);

            impl $crate::bindings::tool::Guest for Component {
                type Session = Session;

                fn specs() -> ::std::vec::Vec<$crate::ToolSpec> {
                    INSTANCE.with(|instance| instance.get().map($crate::Tool::specs).unwrap_or_default())
                }
            }

            impl $crate::bindings::tool::GuestSession for Session {
                fn open(
                    settings: ::std::string::String,
                ) -> ::std::result::Result<$crate::bindings::tool::Session, $crate::Failure> {
                    INSTANCE.with(|instance| {
                        let tool = instance.get()?;
                        let session =
                            $crate::__private::Session::open(&settings, |settings| $crate::Tool::open(tool, settings))?;
                        ::std::result::Result::Ok($crate::bindings::tool::Session::new(Session(session)))
                    })
                }

                fn call(
                    &self,
                    name: ::std::string::String,
                    arguments: ::std::string::String,
                ) -> ::std::result::Result<::std::string::String, $crate::Failure> {
                    INSTANCE.with(|instance| {
                        let tool = instance.get()?;
                        self.0.call(&arguments, |state, arguments| $crate::Tool::call(tool, state, &name, arguments))
                    })
                }

                fn finish(
                    &self,
                ) -> ::std::result::Result<::std::option::Option<::std::string::String>, $crate::Failure> {
                    INSTANCE.with(|instance| {
                        let tool = instance.get()?;
                        self.0.finish(|state| $crate::Tool::finish(tool, state))
                    })
                }
            }

            #[cfg(target_family = "wasm")]
    $crate::bindings::tool::__export_tool!(Component with_types_in $crate::bindings::tool);

            #[cfg(not(target_family = "wasm"))]
            const _: () = {
                let _ = <Component as $crate::bindings::tool::Guest>::specs;
            };
        };
    };
}
