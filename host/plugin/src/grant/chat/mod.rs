//! `chat` and `reward-model`: models that a plugin may ask.

mod reply;
mod taped;

pub use reply::ChatReply;

use super::call_outside::CallOutside;
use super::error::GrantError;
use crate::budget::NoMemory;
use crate::outside::{CallMeter, ChatBody, ChatError, ChatRequest, Endpoint, Endpoints, Progress};
use crate::tape::{QueueTime, RequestHash};
use gavel_data::{OutsideCallEnding, OutsideCallKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The kind of model that is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AskedModel {
    /// An endpoint, for texts.
    #[default]
    Chat,
    /// A reward model, for a number, which it writes as a text.
    RewardModel,
}

impl AskedModel {
    /// Its name in errors, with the article.
    fn noun(self) -> (&'static str, &'static str) {
        match self {
            Self::Chat => ("an", "endpoint"),
            Self::RewardModel => ("a", "reward model"),
        }
    }

    /// The name of its requests on the tape.
    fn on_tape(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::RewardModel => "reward-model",
        }
    }

    /// The kind of its requests in their records.
    fn kind(self) -> OutsideCallKind {
        match self {
            Self::Chat => OutsideCallKind::Chat,
            Self::RewardModel => OutsideCallKind::RewardModel,
        }
    }

    /// The name of the model `name` in reports of a call's waits.
    fn wait(self, name: &str) -> String {
        match self {
            Self::Chat => name.to_owned(),
            Self::RewardModel => format!("reward_model/{name}"),
        }
    }
}

/// The models of one plugin.
#[derive(Default)]
pub(super) struct ChatAccess {
    asked: AskedModel,
    models: BTreeMap<String, Endpoint>,
}

pub(super) fn check_names(asked: AskedModel, names: &[String]) -> Result<(), GrantError> {
    match (asked, names.iter().find(|name| name.is_empty())) {
        (_, None) => Ok(()),
        (AskedModel::Chat, Some(name)) => Err(GrantError::EndpointName { name: name.clone() }),
        (AskedModel::RewardModel, Some(name)) => Err(GrantError::RewardModelName { name: name.clone() }),
    }
}

impl ChatAccess {
    pub(super) fn open(asked: AskedModel, names: &[String], models: &Endpoints) -> Result<Self, GrantError> {
        check_names(asked, names)?;
        let find = |name: &String| match (asked, models.get(name)) {
            (_, Some(model)) => Ok((name.clone(), model)),
            (AskedModel::Chat, None) => Err(GrantError::NoEndpoint { name: name.clone(), known: models.names() }),
            (AskedModel::RewardModel, None) => {
                Err(GrantError::NoRewardModel { name: name.clone(), known: models.names() })
            }
        };
        Ok(Self { asked, models: names.iter().map(find).collect::<Result<_, _>>()? })
    }
}

/// The requests of one call.
pub(crate) struct ChatCalls {
    access: Arc<ChatAccess>,
    outside: CallOutside,
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
    pub(super) fn new(access: Arc<ChatAccess>, outside: CallOutside) -> Self {
        Self { access, outside, open: true }
    }

    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// The meter that the requests are charged to.
    pub(crate) fn meter(&self) -> &CallMeter {
        &self.outside.meter
    }

    fn endpoint(&self, name: &str) -> Result<Endpoint, ChatError> {
        let ChatAccess { asked, models } = &*self.access;
        let (article, noun) = asked.noun();
        if !self.open {
            return Err(ChatError::InvalidRequest(format!(
                "`init` cannot ask {article} {noun}; ask in the call itself"
            )));
        }
        models.get(name).cloned().ok_or_else(|| {
            let granted: Vec<&str> = models.keys().map(String::as_str).collect();
            ChatError::InvalidRequest(format!(
                "the {noun} `{name}` is not granted to this plugin, which has: {}",
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
        let hash = match self.outside.tape.is_off() {
            true => None,
            false => Some(taped::hash(self.access.asked.on_tape(), &request, progress).await?),
        };
        Ok(ReadyRequest { endpoint, request, hash })
    }

    /// Waits for the endpoint's answer, or reads it from the tape. The outer error
    /// ends the call.
    pub(crate) fn ask(
        &self,
        ready: Result<ReadyRequest, ChatError>,
    ) -> impl Future<Output = Result<Result<ChatReply, ChatError>, NoMemory>> + Send + use<> {
        let (outside, asked) = (self.outside.clone(), self.access.asked);
        async move {
            let ReadyRequest { endpoint, request, hash } = match ready {
                Ok(ready) => ready,
                Err(error) => return Ok(Err(error)),
            };
            let name = format!("to the {} `{}`", asked.noun().1, request.endpoint);
            let meter = &outside.meter;
            let live = noted(&endpoint, &outside, asked, request);
            let body = match hash {
                None => live.await,
                Some(hash) => taped::answer(&outside.tape, hash, &name, meter, live).await,
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

/// Asks the endpoint, and notes the request and its end.
async fn noted(
    endpoint: &Endpoint,
    outside: &CallOutside,
    asked: AskedModel,
    request: ChatRequest,
) -> Result<ChatBody, ChatError> {
    let queued = Arc::<QueueTime>::default();
    let mut noted = outside.note(asked.kind(), &request.endpoint, &queued);
    if let Some(noted) = &mut noted
        && let Ok(pieces) = request.pieces()
    {
        noted.ask(pieces.size(), pieces.chunks());
    }
    let answer = in_turn(endpoint, &outside.meter, asked, request, queued).await;
    if let Some(noted) = noted {
        let ending = match &answer {
            Ok(body) => {
                noted.answer(None, body.json().len() as u64, [body.bytes()]);
                return answer;
            }
            Err(ChatError::InvalidRequest(_)) => OutsideCallEnding::InvalidRequest,
            Err(ChatError::Refused(_)) => OutsideCallEnding::Refused,
            Err(ChatError::Unavailable(_)) => OutsideCallEnding::Unavailable,
            Err(ChatError::NoMemory) => OutsideCallEnding::OutOfBudget,
        };
        noted.end(ending, answer.as_ref().err().map(ToString::to_string));
    }
    answer
}

/// Asks the endpoint once it is the request's turn; the wait for it adds up in `queue_time`.
async fn in_turn(
    endpoint: &Endpoint,
    meter: &CallMeter,
    asked: AskedModel,
    request: ChatRequest,
    queue_time: Arc<QueueTime>,
) -> Result<ChatBody, ChatError> {
    let waits = meter.waits().queue(&asked.wait(&request.endpoint), queue_time);
    let queued = meter.pauses().queue();
    let turn = endpoint.turns.clone().acquire_owned().await;
    let (meter, _queued) = match asked {
        AskedModel::Chat => {
            let meter = meter.of_exchange(waits);
            drop(queued);
            (meter, None)
        }
        // The device works for all samples. The call is not charged for the time in which others have their turn.
        AskedModel::RewardModel => {
            waits.serve();
            (meter.clone(), Some((queued, waits)))
        }
    };
    let turn = turn.map_err(|_| ChatError::Unavailable("the sandbox was shut down".into()))?;
    // In its own task, so that it continues while the call waits for a thread. Dropping the wait ends it.
    let answer = endpoint.model.clone().complete(request, meter);
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
    use crate::outside::ChatModel;
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
        let mut asked = pin!(in_turn(&endpoint, &meter, AskedModel::Chat, request(), Arc::default()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(asked.as_mut().poll(&mut context).is_pending());
        drop(endpoint.turns.acquire().await.unwrap());
        assert!(asked.as_mut().poll(&mut context).is_ready());
    }

    #[tokio::test]
    async fn a_request_ends_with_the_one_who_waits_for_it() {
        let (endpoint, meter) = (endpoint(false), CallMeter::alone());
        {
            let mut asked = pin!(in_turn(&endpoint, &meter, AskedModel::Chat, request(), Arc::default()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(asked.as_mut().poll(&mut context).is_pending());
        }
        assert!(endpoint.turns.acquire().await.is_ok());
    }
}
