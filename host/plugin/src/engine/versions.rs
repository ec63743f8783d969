//! The interfaces that components export, in each version of the contract that
//! this host supports.

/// The exports of one version, beside `lifecycle`: their indices in a component, and their functions in an instance.
macro_rules! version {
    ($module:ident, $version:literal, [$($export:ident)*], $($exports:tt)*) => {
        pub(crate) mod $module {
            use crate::imports::State;
            use wasmtime::component::{Instance, InstancePre};
            use wasmtime::{Result, Store};
            use $($exports)*::{$($export,)* lifecycle};

            pub(crate) const VERSION: &str = $version;

            #[derive(Clone)]
            pub(crate) struct Indices {
                lifecycle: lifecycle::GuestIndices,
                $($export: Option<$export::GuestIndices>,)*
            }

            pub(crate) struct Guests {
                pub(crate) lifecycle: lifecycle::Guest,
                $(pub(crate) $export: Option<$export::Guest>,)*
            }

            impl Indices {
                pub(crate) fn new(pre: &InstancePre<State>, exported: &[String]) -> Result<Self> {
                    let has = |name: &str| exported.iter().any(|found| found == name);
                    Ok(Self {
                        lifecycle: lifecycle::GuestIndices::new(pre)?,
                        $($export: has(stringify!($export)).then(|| $export::GuestIndices::new(pre)).transpose()?,)*
                    })
                }

                pub(crate) fn load(&self, store: &mut Store<State>, instance: &Instance) -> Result<Guests> {
                    Ok(Guests {
                        lifecycle: self.lifecycle.load(&mut *store, instance)?,
                        $($export: self.$export.as_ref().map(|it| it.load(&mut *store, instance)).transpose()?,)*
                    })
                }
            }
        }
    };
}

version!(v0_1, "0.1.0", [reward judger taskset tool agent], crate::bindings::v0_1::exports::gavel::plugin);
version!(v0_2, "0.2.0", [reward judger taskset tool agent advantage sampler], crate::bindings::exports::gavel::plugin);
