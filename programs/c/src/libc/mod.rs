//! The functions of C's library, outside of the program's own memory and code.

mod heap;
mod letters;
mod memory;
mod number;
mod numeric;
mod print;
mod scan;
mod streams;
mod strings;

pub use heap::Heap;
pub use memory::{Guest, State};
pub use streams::Streams;

use wasmi::{Error, Linker};

/// Defines all of them.
pub fn link(linker: &mut Linker<State>) -> Result<(), Error> {
    heap::link(linker)?;
    letters::link(linker)?;
    numeric::link(linker)?;
    print::link(linker)?;
    scan::link(linker)?;
    streams::link(linker)?;
    strings::link(linker)
}

/// Defines functions of the program's memory and state.
macro_rules! functions {
    ($linker:ident, $($name:literal => |$guest:ident $(, $argument:ident : $type:ty)*| -> $result:ty $body:block)*) => {
        $($linker.func_wrap(
            "env",
            $name,
            |mut caller: wasmi::Caller<$crate::libc::State> $(, $argument: $type)*| -> Result<$result, wasmi::Error> {
                #[allow(unused_mut, unused_variables)]
                let mut $guest = $crate::libc::Guest::of(&mut caller)?;
                $body
            },
        )?;)*
    };
}
pub(crate) use functions;
