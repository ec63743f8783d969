//! A server as an agent: it is posted each task, and answers once it is done.

use crate::answer::Answer;
use crate::process::fault;
use gavel_data::{Budget, Outcome};
use gavel_endpoint::{excerpt, reason};

/// Posts a task, and reads the answer, of at most `most` bytes.
///
/// # Errors
/// Why there is none.
pub(crate) async fn attempt(client: &reqwest::Client, url: &str, task: String, most: usize) -> Result<Answer, Outcome> {
    let unavailable = |error: reqwest::Error| Outcome::Unavailable(format!("{url}: {}", reason(&error)));
    let request = client.post(url).header("content-type", "application/json").body(task);
    let mut response = request.send().await.map_err(unavailable)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unavailable)? {
        if body.len() + chunk.len() > most {
            let what =
                format!("{url} answered more than {most} bytes\nhint: answer less, or set limits.output of the agent");
            return Err(Outcome::OutOfBudget { which: Budget::Output, what });
        }
        body.extend_from_slice(&chunk);
    }
    match status.as_u16() {
        200..=299 => {}
        // It has too much to do, or is about to begin or to end.
        429 | 502..=504 => return Err(Outcome::Unavailable(format!("{url} answered {status}: {}", excerpt(&body)))),
        _ => return Err(fault(format!("{url} answered {status}: {}", excerpt(&body)))),
    }
    Answer::read(&String::from_utf8_lossy(&body))
}
