//! Limits of requests to the outside: how often, how much, and in which order.
//!
//! A [`Limiter`] gives each request a [`Turn`]. It does not depend on the kind of request: language models, servers and
//! tools use it alike.

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
