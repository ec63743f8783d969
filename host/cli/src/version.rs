//! What this program is, for `--version`.

/// The version, the commit, the libtorch that it is built with, and the contract that plugins are built for.
pub const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit ",
    env!("GAVEL_COMMIT"),
    "\n",
    env!("GAVEL_LIBTORCH"),
    "\ncontract ",
    env!("GAVEL_CONTRACT"),
);

/// The same for a `gavel` that has lost the program beside it.
const ALONE: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit ",
    env!("GAVEL_COMMIT"),
    "\nwithout libtorch\ncontract ",
    env!("GAVEL_CONTRACT"),
);

/// The text for `gavel`; `is_beside` is whether the program is there that is linked with libtorch.
pub fn long(is_beside: bool) -> &'static str {
    if is_beside { LONG } else { ALONE }
}
