//! The imports of components of the contract 0.1. What 0.2 added to a resource
//! is there too; no such component asks for it.

use crate::bindings::gavel::plugin::samples::HostSample;
use crate::bindings::gavel::plugin::{chat, exec, policy, references, reward_model, samples, tasks, tools, types};
use crate::bindings::v0_1::types::PriorVerdict;
use crate::imports::resources::SampleRef;
use crate::imports::state::State;
use wasmtime::component::{HasSelf, Linker, Resource};
use wasmtime::{Result, StoreContextMut};

/// Adds the interfaces under the names of 0.1.
pub(super) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    macro_rules! add {
        ($($interface:ident $name:literal)*) => {
            $($interface::add_to_linker_instance::<_, HasSelf<State>>(
                &mut linker.instance(concat!("gavel:plugin/", $name, "@0.1.0"))?,
                |state| state,
            )?;)*
        };
    }
    add! {
        types "types"
        references "references"
        chat "chat"
        exec "exec"
        reward_model "reward-model"
        tasks "tasks"
        policy "policy"
        tools "tools"
    }
    linker.allow_shadowing(true);
    let mut instance = linker.instance("gavel:plugin/samples@0.1.0")?;
    samples::add_to_linker_instance::<_, HasSelf<State>>(&mut instance, |state| state)?;
    instance.func_wrap("[method]sample.verdict", verdict)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// `sample.verdict`, whose score has no payload in 0.1.
fn verdict(
    mut store: StoreContextMut<'_, State>,
    (sample, name): (Resource<SampleRef>, String),
) -> Result<(Option<PriorVerdict>,)> {
    let verdict = HostSample::verdict(store.data_mut(), sample, name)?;
    Ok((verdict.map(PriorVerdict::from),))
}
