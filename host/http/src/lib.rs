//! What the HTTP servers of Gavel share: connections, bodies and long work are bounded, so that no client keeps others
//! waiting.

mod aside;
mod body;
mod connections;
mod large_bodies;

pub use aside::{Lost, Size, aside, aside_with};
pub use body::{BadBody, VALUES, read_json};
pub use connections::{Client, serve};
