//! Requests to servers: when it is a request's turn, which server answers it, when another attempt may help, and what
//! no answer may show.
//!
//! A [`Limiter`] gives each request a [`Turn`]. [`Servers`] are the servers of one endpoint; [`ask`] asks them until
//! one answers. Nothing here depends on the kind of request: language models, reward models, services and tools use it
//! alike.

mod ask;
mod base_urls;
mod http;
mod key;
mod limiter;
mod on_endpoint_down;
mod pauses;
mod reported;
mod retry;
mod secret;
mod servers;
mod tls;

pub use ask::{Failed, Request, ask};
pub use base_urls::BaseUrls;
pub use http::{excerpt, is_of_this_machine, reason};
pub use key::Key;
pub use limiter::{Asker, Courier, Limiter, LimiterError, LimiterTable, Turn, TurnEvent, Waits, group_number};
pub use on_endpoint_down::OnEndpointDown;
pub use pauses::{Pause, pauses};
pub use reported::{Reported, retry_after};
pub use retry::may_help;
pub use secret::{names_a_key, without_cut_secret, without_secret};
pub use servers::{ChosenServer, Down, Servers};
pub use tls::{NoRootCertificates, TlsClientConfig, tls_client_config, trusting};
