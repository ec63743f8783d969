//! The servers, asked without a network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod asked;
mod fleet;
mod generate;
mod recorded;
mod trainable;
