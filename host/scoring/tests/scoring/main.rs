//! Scoring with real components. Tests that set variables or measure the process are programs of their own.
//! Linking a program takes longer than most of these tests, so they are one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod after;
mod batches;
mod caused_by;
#[path = "../common/mod.rs"]
mod common;
mod composition;
mod llm_judge;
mod math_verify;
mod numbers;
mod probe;
mod reasoning_gym;
mod reward_models;
mod verl;
