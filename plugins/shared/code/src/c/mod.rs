//! What tests in C say, without running them.

pub(crate) mod assertion;
mod expression;
mod library;
mod literal;
mod number;
pub(crate) mod statements;
pub(crate) mod text;
pub(crate) mod wanted;
