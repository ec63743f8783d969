//! Finds passages in a folder of documents with BM25; shared by several standard plugins.

mod answer;
mod documents;
mod index;
mod passages;

pub use answer::write;
pub use documents::{Document, read};
pub use index::Index;
pub use passages::{Passage, split};
