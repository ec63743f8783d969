//! OpenAI's Responses: `/v1/responses`.

mod answer;
mod dialect;
mod items;
mod request;
mod stream;
mod told;

pub(crate) use dialect::Responses;
pub(crate) use request::read;
