//! Limits of what is asked outside: how often, how much, and who is next.
//!
//! A [`Limiter`] gives each request a [`Turn`]. It knows nothing of what is asked: language models, servers and tools
//! take their turns from it alike.

mod asker;
mod bucket;
mod limiter;
mod on_endpoint_down;
mod queue;
mod reported;
mod servers;
mod state;
mod store;
mod table;

pub use asker::{Asker, group_number};
pub use limiter::{Limiter, LimiterError, Turn, Waits};
pub use on_endpoint_down::OnEndpointDown;
pub use reported::{Reported, retry_after};
pub use servers::{ChosenServer, Down, Servers};
pub use table::LimiterTable;
