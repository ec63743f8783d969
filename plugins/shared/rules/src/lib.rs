//! What several of the standard plugins share: where an answer lies in a
//! response, and what a response that is too long costs.
//!
//! The rules follow verl 0.9 where it has them, white space included.

mod boxed;
mod element;
mod overlong;
mod python;

pub use boxed::balanced;
pub use element::{elements, last_element};
pub use overlong::Overlong;
pub use python::{is_space, strip, tail, words};
