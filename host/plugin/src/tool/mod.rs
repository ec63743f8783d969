//! Tools: components whose functions the policy may call, with a state for each trajectory.

mod component;
mod function;
mod report;
mod session;

pub use component::Tool;
pub use function::{ToolFunction, ToolSpec};
pub use report::ToolReport;
pub use session::ToolSession;
