//! Tasksets: datasets that are computed.

use crate::{Failure, Info};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A dataset.
///
/// ```
/// use gavel_sdk::{Failure, Info, NoParams, Taskset};
/// use serde_json::{Map, Value, json};
///
/// /// Sums of two numbers, without end.
/// struct Sums;
///
/// impl Taskset for Sums {
///     type Params = NoParams;
///
///     fn new(_: NoParams) -> Result<Self, String> {
///         Ok(Self)
///     }
///
///     fn info(&self) -> Info {
///         Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
///     }
///
///     fn len(&self) -> Option<u64> {
///         None
///     }
///
///     fn get(&self, index: u64, seed: u64) -> Result<Map<String, Value>, Failure> {
///         let (a, b) = (index, seed % 1000);
///         let mut row = Map::new();
///         row.insert("prompt".into(), json!(format!("What is {a} + {b}?")));
///         row.insert("answer".into(), json!((a + b).to_string()));
///         Ok(row)
///     }
/// }
///
/// gavel_sdk::export_taskset!(Sums);
/// # fn main() {}
/// ```
#[allow(clippy::len_without_is_empty, reason = "the contract has no such function")]
pub trait Taskset: Sized + 'static {
    /// The parameters of this taskset in a run's configuration;
    /// [`NoParams`](crate::NoParams) if there are none.
    type Params: DeserializeOwned;

    /// Creates the plugin, once, before any call.
    ///
    /// # Errors
    /// What is wrong with the parameters, in one sentence for the user.
    fn new(params: Self::Params) -> Result<Self, String>;

    /// The plugin's name, version and promises.
    fn info(&self) -> Info;

    /// The number of rows; `None` if they never end.
    fn len(&self) -> Option<u64>;

    /// The columns of the row at `index`, from 0: `prompt` and any other column
    /// of a dataset's file. The same index and seed give the same row.
    ///
    /// # Errors
    /// With a [`Failure`], there is no such row; its kind names who is at
    /// fault.
    fn get(&self, index: u64, seed: u64) -> Result<Map<String, Value>, Failure>;
}

/// Makes a type that implements [`Taskset`] the component's taskset. Use it
/// once in a crate of the type `cdylib`.
#[macro_export]
macro_rules! export_taskset {
    ($taskset:ty) => {
        const _: () = {
            $crate::__export_plugin!($taskset as $crate::Taskset);

            impl $crate::bindings::taskset::Guest for Component {
                fn len() -> ::std::option::Option<u64> {
                    INSTANCE.with(|instance| $crate::Taskset::len(instance.get().ok()?))
                }

                fn get(index: u64, seed: u64) -> ::std::result::Result<::std::string::String, $crate::Failure> {
                    INSTANCE.with(|instance| {
                        let columns = $crate::Taskset::get(instance.get()?, index, seed)?;
                        ::std::result::Result::Ok($crate::__private::row(columns))
                    })
                }
            }

            #[cfg(target_family = "wasm")]
    $crate::bindings::taskset::__export_taskset!(Component with_types_in $crate::bindings::taskset);

            #[cfg(not(target_family = "wasm"))]
            const _: () = {
                let _ = <Component as $crate::bindings::taskset::Guest>::get;
            };
        };
    };
}

/// A row in the form of the contract.
#[doc(hidden)]
pub fn row(columns: Map<String, Value>) -> String {
    Value::Object(columns).to_string()
}
