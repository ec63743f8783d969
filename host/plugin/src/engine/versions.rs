//! The interfaces that components export, in each version of the contract that
//! this host supports.

/// The exports of one version: their indices in a component, and their functions
/// in an instance.
macro_rules! version {
    ($module:ident, $version:literal, $($exports:tt)*) => {
        pub(crate) mod $module {
            use crate::imports::State;
            use wasmtime::component::{Instance, InstancePre};
            use wasmtime::{Result, Store};
            use $($exports)*::{agent, judger, lifecycle, reward, taskset, tool};

            pub(crate) const VERSION: &str = $version;

            #[derive(Clone)]
            pub(crate) struct Indices {
                lifecycle: lifecycle::GuestIndices,
                reward: Option<reward::GuestIndices>,
                judger: Option<judger::GuestIndices>,
                taskset: Option<taskset::GuestIndices>,
                tool: Option<tool::GuestIndices>,
                agent: Option<agent::GuestIndices>,
            }

            pub(crate) struct Guests {
                pub(crate) lifecycle: lifecycle::Guest,
                pub(crate) reward: Option<reward::Guest>,
                pub(crate) judger: Option<judger::Guest>,
                pub(crate) taskset: Option<taskset::Guest>,
                pub(crate) tool: Option<tool::Guest>,
                pub(crate) agent: Option<agent::Guest>,
            }

            impl Indices {
                pub(crate) fn new(pre: &InstancePre<State>, exported: &[String]) -> Result<Self> {
                    let has = |name: &str| exported.iter().any(|found| found == name);
                    Ok(Self {
                        lifecycle: lifecycle::GuestIndices::new(pre)?,
                        reward: has("reward").then(|| reward::GuestIndices::new(pre)).transpose()?,
                        judger: has("judger").then(|| judger::GuestIndices::new(pre)).transpose()?,
                        taskset: has("taskset").then(|| taskset::GuestIndices::new(pre)).transpose()?,
                        tool: has("tool").then(|| tool::GuestIndices::new(pre)).transpose()?,
                        agent: has("agent").then(|| agent::GuestIndices::new(pre)).transpose()?,
                    })
                }

                pub(crate) fn load(&self, store: &mut Store<State>, instance: &Instance) -> Result<Guests> {
                    Ok(Guests {
                        lifecycle: self.lifecycle.load(&mut *store, instance)?,
                        reward: self.reward.as_ref().map(|it| it.load(&mut *store, instance)).transpose()?,
                        judger: self.judger.as_ref().map(|it| it.load(&mut *store, instance)).transpose()?,
                        taskset: self.taskset.as_ref().map(|it| it.load(&mut *store, instance)).transpose()?,
                        tool: self.tool.as_ref().map(|it| it.load(&mut *store, instance)).transpose()?,
                        agent: self.agent.as_ref().map(|it| it.load(&mut *store, instance)).transpose()?,
                    })
                }
            }
        }
    };
}

version!(v0_1, "0.1.0", crate::bindings::v0_1::exports::gavel::plugin);
version!(v0_2, "0.2.0", crate::bindings::exports::gavel::plugin);
