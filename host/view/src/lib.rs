//! `gavel view`: runs in the browser.
//!
//! | file | |
//! |---|---|
//! | `view`, `run` | the runs that are shown, and what is read of each |
//! | `curves` | metrics as columns, read as the run writes them |
//! | `index`, `row`, `build` | a row of numbers for each trajectory, made by a thread that follows the run |
//! | `filter`, `page` | which rows are shown, and in which order |
//! | `text` | search in messages: a scan of the files with a time limit |
//! | `sample` | a sample as it was recorded, and its group |
//! | `vocabulary` | the texts of tokens |
//! | `scores` | histograms of scores by step |
//! | `findings` | correlations, failures, alike answers and trends: `correlation`, `failures`, `likeness`, `trends` |
//! | `steps` | where the time of a step went |
//! | `evaluation` | validations of runs, and saved answers |
//! | `access`, `router`, `answer` | who is answered, and with what |
//! | `assets`, `export` | the page, as the server and as files |
//!
//! Text of models, plugins and rows leaves this crate as JSON only. The page shows it as text: see `web/shown.js`.

mod access;
mod answer;
mod assets;
mod build;
mod correlation;
mod curves;
mod details;
mod error;
mod evaluation;
mod export;
mod failures;
mod filter;
mod findings;
mod index;
mod likeness;
mod page;
mod place;
mod router;
mod row;
mod run;
mod sample;
mod scores;
mod steps;
mod text;
mod trends;
mod view;
mod vocabulary;

pub use access::Access;
pub use curves::{Axis, SeriesRequest};
pub use error::ViewError;
pub use export::export;
pub use filter::{Filter, Sort};
pub use page::{Page, PageRequest};
pub use router::router;
pub use scores::HistogramRequest;
pub use view::View;
pub use vocabulary::TokensRequest;
