//! What flows through Gavel: tasks in, samples and outcomes out.
//!
//! A [`Task`] is one row of a dataset, a [`Sample`] one attempt at it, an
//! [`Outcome`] what scoring says of the attempt. Datasets are read by
//! [`dataset`], and every random choice of a run comes from [`seed`].

pub mod column_names;
pub mod dataset;
pub mod disk;
pub mod evaluation;
pub mod evaluation_record;
pub mod files;
pub mod group;
pub mod json;
pub mod message;
mod message_json;
pub mod outcome;
pub mod record;
pub mod sample;
pub mod sample_input;
pub mod sample_outcome;
pub mod seed;
pub mod shown;
pub mod task;
pub mod tokens;

pub use column_names::{ColumnNames, KnownColumn, NoColumn};
pub use dataset::{DatasetReader, DatasetRow, Row, RowError, RowReader};
pub use evaluation::{Diagnosis, Evaluation, JudgeId, Provenance, Usage};
pub use evaluation_record::EvaluationRecord;
pub use group::{Group, Member};
pub use json::{Columns, Json};
pub use message::{ContentPart, Media, Message, Role, ToolCall, last_turn};
pub use outcome::{Blame, Budget, CausedBy, Credit, MOST_REWARD, Metric, Outcome, OutcomeKind, Score};
pub use record::{SampleRecord, TrajectoryRecord};
pub use sample::{FinishReason, Sample, Trajectory};
pub use sample_input::{PriorVerdict, PriorVerdicts, SampleInput};
pub use sample_outcome::{LastCall, NotCalled, SampleOutcome, Timing};
pub use shown::{Shown, ShownLines};
pub use task::{Reference, Task, TaskError};
pub use tokens::{KnownTokens, TokenCounts, Tokens};
