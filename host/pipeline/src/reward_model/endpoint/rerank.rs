//! Requests with the responses to one prompt: `/rerank` of vLLM, Jina and Cohere. The prompt is the query, and the
//! responses are the documents.

use super::asker::{Asker, Place};
use gavel_data::{ContentPart, Message, Role};
use gavel_endpoint::excerpt;
use gavel_plugin::ChatError;
use serde::Deserialize;
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// The most documents of a request.
const MOST_DOCUMENTS: usize = 64;
/// How long the first document of a query waits for others.
const MAX_WAIT: Duration = Duration::from_millis(5);

/// Requests with the documents of one query each.
pub(super) struct Rerank {
    model: Option<String>,
    /// The documents that wait, by their query. The task that asks for a query has been spawned if it is here.
    waiting: Mutex<BTreeMap<String, Vec<Waiting>>>,
}

/// A document that waits for its score.
struct Waiting {
    document: String,
    score: oneshot::Sender<Result<f64, ChatError>>,
}

#[derive(Deserialize)]
struct Ranked {
    results: Vec<Rank>,
}

#[derive(Deserialize)]
struct Rank {
    index: usize,
    relevance_score: f64,
}

impl Rerank {
    pub(super) fn new(model: Option<String>) -> Self {
        Self { model, waiting: Mutex::default() }
    }

    /// Asks for the score of a conversation, together with the waiting conversations that have the same prompt.
    pub(super) async fn score(
        self: &Arc<Self>,
        asker: &Arc<Asker>,
        conversation: &[Message],
    ) -> Result<f64, ChatError> {
        let (query, document) = pair(conversation)?;
        let (score, received) = oneshot::channel();
        let waiting = Waiting { document, score };
        let is_first = match self.waiting().entry(query.clone()) {
            Entry::Occupied(mut others) => {
                others.get_mut().push(waiting);
                false
            }
            Entry::Vacant(place) => {
                place.insert(vec![waiting]);
                true
            }
        };
        if is_first {
            let (rerank, asker) = (self.clone(), asker.clone());
            // Not in this future, which ends with its call: others may wait for the same request.
            tokio::spawn(async move { rerank.ask_all(&asker, &query).await });
        }
        // Fails only where the runtime is shut down.
        received.await.unwrap_or_else(|_| Err(ChatError::Unavailable("the request was given up".into())))
    }

    /// Asks for the documents of a query that wait.
    async fn ask_all(&self, asker: &Asker, query: &str) {
        sleep(MAX_WAIT).await;
        loop {
            // Others may come until there is a place.
            let place = asker.place().await;
            let (documents, are_all) = self.take(query);
            let texts: Vec<&str> = documents.iter().map(|waiting| waiting.document.as_str()).collect();
            let scores = match place {
                _ if texts.is_empty() => return,
                Ok(place) => self.ask(asker, place, query, &texts).await,
                Err(error) => Err(error),
            };
            match scores {
                Ok(scores) => documents.into_iter().zip(scores).for_each(|(waiting, score)| waiting.end(Ok(score))),
                // It may be the fault of one of them.
                Err(ChatError::Refused(_)) if documents.len() > 1 => {
                    for waiting in documents {
                        let score = self.ask_alone(asker, query, &waiting.document).await;
                        waiting.end(score);
                    }
                }
                Err(error) => documents.into_iter().for_each(|waiting| waiting.end(Err(error.clone()))),
            }
            if are_all {
                return;
            }
        }
    }

    /// The next documents of a query, and whether they are all that wait. Documents whose calls have ended are left out.
    fn take(&self, query: &str) -> (Vec<Waiting>, bool) {
        let mut all = self.waiting();
        let mut documents = all.remove(query).unwrap_or_default();
        documents.retain(|waiting| !waiting.score.is_closed());
        let rest = documents.split_off(documents.len().min(MOST_DOCUMENTS));
        let are_all = rest.is_empty();
        if !are_all {
            all.insert(query.to_owned(), rest);
        }
        (documents, are_all)
    }

    async fn ask_alone(&self, asker: &Asker, query: &str, document: &str) -> Result<f64, ChatError> {
        let scores = self.ask(asker, asker.place().await?, query, &[document]).await?;
        Ok(scores[0])
    }

    async fn ask(
        &self,
        asker: &Asker,
        place: Place<'_>,
        query: &str,
        documents: &[&str],
    ) -> Result<Vec<f64>, ChatError> {
        let body = self.body(query, documents)?;
        asker.ask(place, &body, |answer| read(answer, documents.len())).await
    }

    pub(super) fn body(&self, query: &str, documents: &[&str]) -> Result<Vec<u8>, ChatError> {
        let mut fields =
            Map::from_iter([("query".to_owned(), query.into()), ("documents".to_owned(), json!(documents))]);
        // vLLM then gives the score itself; `activation` is the name in older versions.
        fields.extend(["use_activation", "activation"].map(|name| (name.to_owned(), false.into())));
        fields.extend(self.model.clone().map(|model| ("model".to_owned(), model.into())));
        serde_json::to_vec(&fields).map_err(|error| ChatError::Refused(error.to_string()))
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn end(self, score: Result<f64, ChatError>) {
        // Its call may have ended.
        let _ = self.score.send(score);
    }
}

/// The query and the document of a conversation.
///
/// # Errors
/// The conversation is not a prompt of one message and its response, or they are not texts.
pub(super) fn pair(conversation: &[Message]) -> Result<(String, String), ChatError> {
    let is_text = |message: &Message| message.content.iter().all(|part| matches!(part, ContentPart::Text(_)));
    match conversation {
        [query, document] if (query.role, document.role) != (Role::User, Role::Assistant) => {
            Err(unfit(&format!("the messages are those of {} and {}", query.role.as_str(), document.role.as_str())))
        }
        [query, document] if !is_text(query) || !is_text(document) => Err(unfit("a message has an attachment")),
        [_, document] if !document.tool_calls.is_empty() => Err(unfit("the response has tool calls")),
        [query, document] => Ok((query.text(), document.text())),
        _ => Err(unfit(&format!("the conversation has {} messages", conversation.len()))),
    }
}

fn unfit(what: &str) -> ChatError {
    ChatError::Refused(format!("the protocol rerank takes one message of a user and one response, and {what}"))
}

/// The scores in an answer, in the order of the documents.
pub(super) fn read(body: &[u8], documents: usize) -> Result<Vec<f64>, String> {
    let Ranked { results } = serde_json::from_slice(body)
        .map_err(|error| format!("its answer is not a ranking ({error}): {}", excerpt(body)))?;
    if results.len() != documents {
        return Err(format!("its answer has {} results, and {documents} documents were sent", results.len()));
    }
    let mut scores = vec![None; documents];
    for Rank { index, relevance_score } in results {
        match scores.get_mut(index) {
            Some(score @ None) if relevance_score.is_finite() => *score = Some(relevance_score),
            Some(None) => return Err(format!("its score of the document {index} is {relevance_score}")),
            Some(Some(_)) => return Err(format!("its answer has two results of the document {index}")),
            None => return Err(format!("its answer has a result of the document {index}, and {documents} were sent")),
        }
    }
    // Each index is there: there are as many results as documents, and no two of one.
    Ok(scores.into_iter().flatten().collect())
}
