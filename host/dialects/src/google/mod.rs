//! Google's `generateContent` and `streamGenerateContent`.

mod answer;
mod contents;
mod dialect;
mod form;
mod request;
mod schema;
mod stream;

pub(crate) use dialect::Google;
pub(crate) use form::Form;
pub(crate) use request::{read, read_counted};
