//! What several of the standard plugins share: where an answer lies in a
//! response, and what a response that is too long costs.
//!
//! The rules follow verl 0.9 where it has them, white space included.

mod braces;
mod element;
mod fence;
mod overlong;
mod python;

pub use braces::balanced;
pub use element::{check_name, elements, last_element};
pub use fence::{Fence, fences};
pub use overlong::Overlong;
pub use python::{is_space, strip, tail, words};
