//! Code that several standard plugins share: finding the answer in a response,
//! and the penalty of a response that is too long.
//!
//! The rules follow those of verl 0.9, if it has them, including white space.

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
