//! `chat`: language models that a plugin may ask.

mod reply;
mod taped;

pub use reply::ChatReply;

use super::error::GrantError;
use crate::call_meter::{CallMeter, Progress};
use crate::chat::{ChatBody, ChatError, ChatRequest, Endpoint, Endpoints};
use crate::memory_budget::NoMemory;
use crate::tape::{CallTape, RequestHash};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The endpoints of one plugin.
#[derive(Default)]
pub(super) struct ChatAccess(BTreeMap<String, Endpoint>);

pub(super) fn check_names(names: &[String]) -> Result<(), GrantError> {
    match names.iter().find(|name| name.is_empty()) {
        Some(name) => Err(GrantError::EndpointName { name: name.clone() }),
        None => Ok(()),
    }
}

impl ChatAccess {
    pub(super) fn open(names: &[String], endpoints: &Endpoints) -> Result<Self, GrantError> {
        check_names(names)?;
        let find = |name: &String| match endpoints.get(name) {
            Some(endpoint) => Ok((name.clone(), endpoint)),
            None => Err(GrantError::NoEndpoint { name: name.clone(), known: endpoints.names() }),
        };
        names.iter().map(find).collect::<Result<_, _>>().map(Self)
    }
}

/// The requests of one call.
pub(crate) struct ChatCalls {
    access: Arc<ChatAccess>,
    tape: CallTape,
    meter: CallMeter,
    /// Closed in `init`, whose result may be kept on disk.
    open: bool,
}

/// A request that can be sent.
pub(crate) struct ReadyRequest {
    endpoint: Endpoint,
    request: ChatRequest,
    /// Its hash, where there is a tape.
    hash: Option<RequestHash>,
}

impl ChatCalls {
    pub(super) fn new(access: Arc<ChatAccess>, tape: CallTape, meter: CallMeter) -> Self {
        Self { access, tape, meter, open: true }
    }

    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// The meter that the requests are charged to.
    pub(crate) fn meter(&self) -> &CallMeter {
        &self.meter
    }

    fn endpoint(&self, name: &str) -> Result<Endpoint, ChatError> {
        if !self.open {
            return Err(ChatError::InvalidRequest("`init` cannot ask an endpoint; ask in the call itself".into()));
        }
        self.access.0.get(name).cloned().ok_or_else(|| {
            let granted: Vec<&str> = self.access.0.keys().map(String::as_str).collect();
            ChatError::InvalidRequest(format!(
                "the endpoint `{name}` is not granted to this plugin, which has: {}",
                granted.join(", ")
            ))
        })
    }

    /// Checks that a request may be made.
    pub(crate) async fn prepare(
        &self,
        request: ChatRequest,
        progress: &mut Progress,
    ) -> Result<ReadyRequest, ChatError> {
        let endpoint = self.endpoint(&request.endpoint)?;
        let hash = match self.tape.is_off() {
            true => None,
            false => Some(taped::hash(&request, progress).await?),
        };
        Ok(ReadyRequest { endpoint, request, hash })
    }

    /// Waits for the endpoint's answer, or reads it from the tape. The outer error
    /// ends the call.
    pub(crate) fn ask(
        &self,
        ready: Result<ReadyRequest, ChatError>,
    ) -> impl Future<Output = Result<Result<ChatReply, ChatError>, NoMemory>> + Send + use<> {
        let (tape, meter) = (self.tape.clone(), self.meter.clone());
        async move {
            let ReadyRequest { endpoint, request, hash } = match ready {
                Ok(ready) => ready,
                Err(error) => return Ok(Err(error)),
            };
            let name = format!("to the endpoint `{}`", request.endpoint);
            let live = in_turn(&endpoint, &meter, request);
            let body = match hash {
                None => live.await,
                Some(hash) => taped::answer(&tape, hash, &name, &meter, live).await,
            };
            match body {
                Err(ChatError::NoMemory) => Err(meter.refuse()),
                Ok(body) => {
                    meter.progress().advance(body.json().len()).await;
                    Ok(ChatReply::new(body))
                }
                Err(error) => Ok(Err(error)),
            }
        }
    }
}

async fn in_turn(endpoint: &Endpoint, meter: &CallMeter, request: ChatRequest) -> Result<ChatBody, ChatError> {
    let (queued, waits) = (meter.pauses().queue(), meter.waits().queue(&request.endpoint));
    let turn = endpoint.turns.clone().acquire_owned().await;
    let _served = meter.pauses().serve();
    drop(queued);
    waits.serve();
    let turn = turn.map_err(|_| ChatError::Unavailable("the sandbox was shut down".into()))?;
    // In its own task, so that it continues while the call waits for a thread. Dropping the wait ends it.
    let answer = endpoint.model.clone().complete(request, meter.clone());
    let mut exchange = JoinSet::new();
    exchange.spawn_on(
        async move {
            // The turn ends when the answer is there, and not only when the call reads it.
            let _turn = turn;
            answer.await
        },
        &endpoint.handle,
    );
    match exchange.join_next().await {
        Some(Ok(answer)) => answer,
        _ => Err(ChatError::Unavailable("the host lost the request".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ChatModel;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use serde_json::Value;
    use std::num::NonZeroUsize;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use tokio::runtime::Handle;

    /// Answers after some polls, as a server does, or never.
    struct Model {
        answers: bool,
    }

    impl ChatModel for Model {
        fn complete(
            self: Arc<Self>,
            _: ChatRequest,
            meter: CallMeter,
        ) -> BoxFuture<'static, Result<ChatBody, ChatError>> {
            async move {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                match self.answers {
                    true => Ok(ChatBody::of(&Value::Null, &meter)?),
                    false => std::future::pending().await,
                }
            }
            .boxed()
        }
    }

    /// An endpoint with one turn.
    fn endpoint(answers: bool) -> Endpoint {
        let endpoints = Endpoints::default();
        endpoints.add("judge".into(), Arc::new(Model { answers }), NonZeroUsize::MIN, Handle::current());
        endpoints.get("judge").unwrap()
    }

    fn request() -> ChatRequest {
        ChatRequest { endpoint: "judge".into(), messages: Vec::new(), options: Default::default() }
    }

    #[tokio::test]
    async fn an_answer_comes_while_the_call_is_not_polled() {
        let (endpoint, meter) = (endpoint(true), CallMeter::alone());
        let mut asked = pin!(in_turn(&endpoint, &meter, request()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(asked.as_mut().poll(&mut context).is_pending());
        drop(endpoint.turns.acquire().await.unwrap());
        assert!(asked.as_mut().poll(&mut context).is_ready());
    }

    #[tokio::test]
    async fn a_request_ends_with_the_one_who_waits_for_it() {
        let (endpoint, meter) = (endpoint(false), CallMeter::alone());
        {
            let mut asked = pin!(in_turn(&endpoint, &meter, request()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(asked.as_mut().poll(&mut context).is_pending());
        }
        assert!(endpoint.turns.acquire().await.is_ok());
    }
}
