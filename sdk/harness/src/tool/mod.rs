//! Tools under test: sessions, their calls, and the expected results.

mod call;
mod expectation;
mod session;

pub use call::FunctionCall;
pub(crate) use call::said;
pub use expectation::CallExpectation;
pub use session::Session;
