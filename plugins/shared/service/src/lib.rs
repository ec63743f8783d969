//! Asks a server for verdicts about samples. The page of the plugin `service`
//! has the protocol.

mod http;
mod question;
mod reply;

use gavel_sdk::{Failure, Reference, Sample, Verdict};
use http::{Exchange, Server};
use std::time::Duration;

/// The first pause before another attempt; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, unless the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A server that gives verdicts.
pub struct Service {
    server: Server,
    retries: u32,
}

/// The keys of `[[reward]].params`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Where the samples are sent.
    url: String,
    /// The variable with the key that is sent as a bearer token.
    api_key_env: Option<String>,
    /// Attempts after the first.
    #[serde(default = "three")]
    retries: u32,
}

fn three() -> u32 {
    3
}

impl Service {
    /// The server that the parameters name.
    ///
    /// # Errors
    /// The address is not valid.
    pub fn new(Params { url, api_key_env, retries }: Params) -> Result<Self, String> {
        Ok(Self { server: Server::parse(&url, api_key_env)?, retries })
    }

    /// Returns a verdict for each of the samples, which are attempts at one
    /// task.
    ///
    /// # Errors
    /// The server does not answer, gives no verdict, or answers with something
    /// else.
    pub fn judge(&self, samples: &[&Sample], reference: &Reference) -> Result<Vec<Verdict>, Failure> {
        let answer = self.ask(&question::body(samples, reference))?;
        reply::verdicts(&answer, samples.len())
    }

    /// The body of the answer. An attempt that may succeed later is repeated.
    fn ask(&self, body: &[u8]) -> Result<Vec<u8>, Failure> {
        let (mut pause, mut left) = (FIRST_PAUSE, self.retries);
        loop {
            match self.server.post(body)? {
                Exchange::Answered(body) => return Ok(body),
                Exchange::Lost { what, .. } if left == 0 => return Err(Failure::unavailable(what)),
                Exchange::Lost { after, .. } => http::sleep(pause.max(after)),
            }
            (pause, left) = ((2 * pause).min(LONGEST_PAUSE), left - 1);
        }
    }
}
