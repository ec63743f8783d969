//! Runs the code of a response against test cases, each in a fresh child that
//! sees only the case's input. The expected answer and the comparison stay
//! here.

mod c;
mod cases;
mod checks;
mod code;
mod compare;
mod effort;
mod language;
mod repeat;
mod rounds;
mod tester;
mod verdict;
mod written;

pub use language::Language;
pub use tester::{CPU_MS, MAX_TESTS, Tester};
