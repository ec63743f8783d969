//! `/score`: rows, and the lines that `gavel score` writes for them.

use crate::error::ServiceError;
use crate::server::Server;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use gavel_data::Columns;
use gavel_http::read_json;
use gavel_scoring::{RowOutcome, write_line};
use serde::Deserialize;

/// The most values of a body.
pub(crate) const VALUES: usize = 2 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    rows: Vec<Columns>,
}

pub(crate) async fn answer(State(server): State<Server>, request: Request) -> Result<Response, ServiceError> {
    let (Asked { rows }, size) = read_json(request, VALUES).await?;
    let scored = server.score(rows.into_iter().map(|row| server.named(row)).collect(), size.into_bytes()).await?;
    Ok(([(CONTENT_TYPE, "application/json")], outcomes(&scored)?).into_response())
}

/// `{"outcomes": […]}`
fn outcomes(scored: &[RowOutcome]) -> Result<Vec<u8>, ServiceError> {
    let mut text = b"{\"outcomes\":[".to_vec();
    for (position, RowOutcome { id, outcome }) in scored.iter().enumerate() {
        if position > 0 {
            text.push(b',');
        }
        write_line(&mut text, id.as_deref(), outcome).map_err(|error| ServiceError::internal(error.to_string()))?;
    }
    text.extend_from_slice(b"]}\n");
    Ok(text)
}
