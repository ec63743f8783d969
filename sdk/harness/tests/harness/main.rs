//! The harness with real components.
//! Linking a program takes longer than most of these tests, so they are one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agent_attempts;
mod calls;
mod check;
mod common;
mod contracts;
mod javascript_output;
mod page;
mod python_output;
mod tool_sessions;
