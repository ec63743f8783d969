//! `/get_reward`: what OpenRLHF asks a remote reward model, `--reward.remote_url`.

use crate::error::ServiceError;
use crate::score::VALUES;
use crate::server::Server;
use axum::Json;
use axum::extract::{Request, State};
use gavel_data::{Columns, Json as JsonText, OutcomeKind};
use gavel_http::read_json;
use gavel_scoring::RowOutcome;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The rows of a request, by column.
#[derive(Deserialize)]
struct Queries {
    /// The prompts with their responses.
    query: Vec<String>,
    prompts: Vec<String>,
    /// The ground truths.
    labels: Vec<JsonText>,
}

pub(crate) async fn answer(State(server): State<Server>, request: Request) -> Result<Json<Value>, ServiceError> {
    server.check_no_judgers()?;
    let (asked, size): (Queries, _) = read_json(request, VALUES).await?;
    let Queries { query, prompts, labels } = asked;
    if query.len() != prompts.len() || query.len() != labels.len() {
        return Err(ServiceError::invalid(format!(
            "`query`, `prompts` and `labels` have {}, {} and {} rows",
            query.len(),
            prompts.len(),
            labels.len()
        )));
    }
    let ends = &server.shared().openrlhf.response_ends;
    let rows = query.iter().zip(prompts).zip(labels);
    let rows = rows.map(|((query, prompt), label)| row(query, prompt, label, ends)).collect();
    let scored = server.score(rows, size.into_bytes()).await?;
    Ok(Json(rewards(&scored, server.shared().openrlhf.no_score)))
}

/// The row of a response, which follows its prompt in `query`.
fn row(query: &str, prompt: String, label: JsonText, ends: &[String]) -> Result<Columns, String> {
    let Some(mut response) = query.strip_prefix(&prompt) else {
        return Err("`query` does not begin with its prompt, so where the response begins is not known".into());
    };
    while let Some(rest) = ends.iter().find_map(|end| response.strip_suffix(&**end)) {
        response = rest;
    }
    let mut columns = Columns::default();
    columns.insert("response", response);
    columns.insert("prompt", &*prompt);
    // A dataset without labels has empty ones.
    if !label.is_null() && label.string().is_none_or(|label| !label.is_empty()) {
        columns.insert("ground_truth", label);
    }
    Ok(columns)
}

/// The answer, which has only numbers, and the same keys for every row.
fn rewards(scored: &[RowOutcome], no_score: f64) -> Value {
    let rewards: Vec<f64> = scored.iter().map(|scored| scored.outcome.reward.unwrap_or(no_score)).collect();
    let mut logs = Map::new();
    for kind in OutcomeKind::ALL {
        let flags: Vec<f64> = scored.iter().map(|scored| f64::from(u8::from(scored.outcome.outcome == kind))).collect();
        logs.insert(format!("gavel_{}", kind.as_str().replace('-', "_")), json!(flags));
    }
    json!({"rewards": rewards, "scores": rewards, "extra_logs": logs})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_follows_its_prompt_without_the_tokens_that_end_it() {
        let ends = ["<|im_end|>".to_owned(), "<eos>".to_owned()];
        assert!(row("Q: 4", "Q: ".into(), "4".into(), &[]).unwrap().get("ground_truth").is_some());
        for no_label in ["".into(), JsonText::default()] {
            assert!(row("Q: 4", "Q: ".into(), no_label, &[]).unwrap().get("ground_truth").is_none());
        }
        let response = |query: &str| {
            row(query, "Q: ".into(), "4".into(), &ends).map(|row| row.get("response").unwrap().string().unwrap())
        };
        assert_eq!(response("Q: 4 <|im_end|><eos>"), Ok("4 ".into()));
        assert_eq!(response("Q: <eos>4"), Ok("<eos>4".into()));
        assert!(response("q: 4").unwrap_err().contains("does not begin with its prompt"));
    }
}
