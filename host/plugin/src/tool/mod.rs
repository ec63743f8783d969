//! Tools: components whose functions the policy may call, with a state for each trajectory.

mod component;
mod report;
mod session;

pub use component::Tool;
pub use report::ToolReport;
pub use session::ToolSession;
