//! Conversations of the policy with a user who is played, by a script or by a language model; shared by the standard
//! agents with such a user.

mod attempt;
mod dialogue;
mod opening;
mod settings;
mod thought;
mod user;

pub use attempt::attempt;
pub use dialogue::{Dialogue, Line, Side};
pub use opening::Opening;
pub use settings::Settings;
pub use thought::without_thoughts;
pub use user::{Ending, Said, User};
