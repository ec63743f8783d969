//! `/score` and `/rerank`: the scores of pairs of texts. The first is what a user says, and the second what an assistant
//! answers, in the model's chat template.

use super::activation::activate;
use super::request::Common;
use super::server::{Classifier, Input, check_texts};
use crate::openai::body::Body;
use crate::openai::error::ApiError;
use crate::openai::server::{now, usage};
use crate::openai::settings::OneOrMany;
use axum::Json;
use axum::extract::State;
use gavel_data::{Message, Role};
use gavel_http::Size;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
pub(super) struct AskedScore {
    #[serde(alias = "queries")]
    text_1: OneOrMany,
    #[serde(alias = "documents")]
    text_2: OneOrMany,
    #[serde(flatten)]
    common: Common,
}

/// A request in vLLM's form, with `documents`, or in the form of text-embeddings-inference, with `texts`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the body must have `query` and `documents`, or `query` and `texts`")]
pub(super) enum AskedRerank {
    Documents {
        query: String,
        documents: Vec<String>,
        #[serde(default)]
        top_n: usize,
        #[serde(flatten)]
        common: Common,
    },
    Texts {
        query: String,
        texts: Vec<String>,
        #[serde(default)]
        raw_scores: bool,
        #[serde(default)]
        return_text: bool,
        #[serde(default)]
        truncate: bool,
    },
}

/// The most bytes of the copies of a query.
const COPIES: usize = 64 << 20;

/// The pairs of a query with each of these texts. Each pair has a copy of the query.
pub(super) fn pairs(query: &str, texts: &[String]) -> Result<Vec<Input>, ApiError> {
    check_texts(texts.len())?;
    match query.len().saturating_mul(texts.len()) {
        0..=COPIES => Ok(texts.iter().map(|text| pair(query, text)).collect()),
        _ => {
            let (bytes, count) = (query.len(), texts.len());
            Err(ApiError::invalid(format!("a query of {bytes} bytes is too long to be paired with {count} texts")))
        }
    }
}

/// What a user says, and what an assistant answers.
pub(super) fn pair(query: &str, text: &str) -> Input {
    let messages = vec![Message::new(Role::User, query), Message::new(Role::Assistant, text)];
    Input::Conversation(messages, Map::new())
}

impl Classifier {
    /// The score of each pair, and the number of tokens of all pairs.
    async fn scores(&self, pairs: Vec<Input>, size: Size, is_activated: bool) -> Result<(Vec<f64>, usize), ApiError> {
        let found = self.classify(pairs, size).await?;
        let tokens = found.iter().map(|labels| labels.tokens).sum();
        let score = |scores: &[f64]| match *scores {
            [score] => Ok(activate(&[score], is_activated)[0]),
            _ => Err(ApiError::invalid(format!("the model has {} labels, and a score is of one", scores.len()))),
        };
        Ok((found.iter().map(|labels| score(&labels.scores)).collect::<Result<_, _>>()?, tokens))
    }
}

pub(super) async fn score(
    State(classifier): State<Classifier>,
    Body(asked, size): Body<AskedScore>,
) -> Result<Json<Value>, ApiError> {
    let AskedScore { text_1, text_2, common } = asked;
    classifier.check_model(common.model.as_deref())?;
    common.check()?;
    let (queries, texts) = (text_1.into_vec(), text_2.into_vec());
    let pairs = match queries.as_slice() {
        [query] => pairs(query, &texts)?,
        many if many.len() == texts.len() => {
            check_texts(texts.len())?;
            many.iter().zip(&texts).map(|(query, text)| pair(query, text)).collect()
        }
        many => {
            let what = format!("`text_1` has {} texts and `text_2` has {}", many.len(), texts.len());
            return Err(ApiError::field("text_1", what));
        }
    };
    let (scores, tokens) = classifier.scores(pairs, size, common.is_activated(true)).await?;
    let scores = scores.into_iter().enumerate();
    let data: Vec<Value> =
        scores.map(|(index, score)| json!({"index": index, "object": "score", "score": score})).collect();
    let (model, created) = (&*classifier.name, now());
    Ok(Json(json!({"id": format!("score-{created:x}"), "object": "list", "created": created, "model": model,
                   "data": data, "usage": usage(tokens, 0)})))
}

pub(super) async fn rerank(
    State(classifier): State<Classifier>,
    Body(asked, size): Body<AskedRerank>,
) -> Result<Json<Value>, ApiError> {
    let ranked = |scores: Vec<f64>| {
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().enumerate().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    };
    match asked {
        AskedRerank::Documents { query, documents, top_n, common } => {
            classifier.check_model(common.model.as_deref())?;
            common.check()?;
            let pairs = pairs(&query, &documents)?;
            let (scores, tokens) = classifier.scores(pairs, size, common.is_activated(true)).await?;
            let most = if top_n == 0 { documents.len() } else { top_n };
            let result = |(index, score): (usize, f64)| json!({"index": index, "document": {"text": documents[index]}, "relevance_score": score});
            let results: Vec<Value> = ranked(scores).into_iter().take(most).map(result).collect();
            let (model, id) = (&*classifier.name, format!("rerank-{:x}", now()));
            Ok(Json(json!({"id": id, "model": model, "usage": {"total_tokens": tokens}, "results": results})))
        }
        AskedRerank::Texts { query, texts, raw_scores, return_text, truncate } => {
            if truncate {
                return Err(ApiError::field("truncate", "`truncate`: true is not supported: a text is never cut"));
            }
            let pairs = pairs(&query, &texts)?;
            let (scores, _) = classifier.scores(pairs, size, !raw_scores).await?;
            let rank = |(index, score): (usize, f64)| match return_text {
                true => json!({"index": index, "score": score, "text": texts[index]}),
                false => json!({"index": index, "score": score}),
            };
            Ok(Json(ranked(scores).into_iter().map(rank).collect()))
        }
    }
}
