//! The dialects over HTTP, before a server that answers chat requests as a test says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod asked;
mod refused;
mod requests;
mod streams;
