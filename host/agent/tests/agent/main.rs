//! Episodes of a scripted policy. `mcp`, which sets variables and measures the process, is a program of its own.
//! Linking a program takes longer than most of these tests, so they are one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
#[path = "../common/mod.rs"]
mod common;
mod credit;
mod episodes;
mod hostile;
mod mcp_deaths;
mod shop;
