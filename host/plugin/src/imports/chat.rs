//! The host's side of `chat`.

use crate::bindings::gavel::plugin::chat;
use crate::grant::ChatReply;
use crate::imports::state::State;
use crate::outside::ChatError;
use futures::future::try_join_all;
use wasmtime::Result;
use wasmtime::component::Resource;

impl chat::Host for State {
    async fn complete(
        &mut self,
        requests: Vec<chat::Request>,
    ) -> Result<Vec<Result<Resource<ChatReply>, chat::Error>>> {
        let meter = self.grants.chat.meter().clone();
        meter.request(requests.len())?;
        // Held until all requests are answered: whether the memory suffices must not depend on which answer comes
        // first.
        let mut held = meter.hold(0)?;
        let mut progress = meter.progress();
        let mut asked = Vec::with_capacity(requests.len());
        for request in requests {
            let ready = match self.lift_request(request, &mut held, &mut progress).await? {
                Ok(request) => self.grants.chat.prepare(request, &mut progress).await,
                Err(error) => Err(error),
            };
            asked.push(self.grants.chat.ask(ready));
        }
        let answers = try_join_all(asked).await?;
        let mut replies = Vec::with_capacity(answers.len());
        for answer in answers {
            meter.note_answer(&answer);
            replies.push(match answer {
                Ok(reply) => Ok(self.table.push(reply)?),
                Err(error) => Err(error.into()),
            });
        }
        Ok(replies)
    }
}

impl chat::HostReply for State {
    fn text(&mut self, reply: Resource<ChatReply>) -> Result<String> {
        Ok(self.table.get(&reply)?.text()?)
    }

    fn finish_reason(&mut self, reply: Resource<ChatReply>) -> Result<Option<String>> {
        Ok(self.table.get(&reply)?.finish_reason().unwrap_or_default())
    }

    fn body(&mut self, reply: Resource<ChatReply>) -> Result<String> {
        Ok(self.table.get(&reply)?.json().to_owned())
    }

    fn drop(&mut self, reply: Resource<ChatReply>) -> Result<()> {
        self.table.delete(reply)?;
        Ok(())
    }
}

impl From<ChatError> for chat::Error {
    fn from(error: ChatError) -> Self {
        match error {
            ChatError::InvalidRequest(what) => Self::InvalidRequest(what),
            ChatError::Refused(what) => Self::Refused(what),
            ChatError::Unavailable(what) => Self::Unavailable(what),
            // Not reached: the call has ended before.
            ChatError::NoMemory => Self::Unavailable(error.to_string()),
        }
    }
}
