//! The data that flows through Gavel: tasks in, samples and outcomes out.
//!
//! A [`Task`] is one row of a dataset, a [`Sample`] one attempt at it, and an
//! [`Outcome`] the result of one plugin's call for it. [`dataset`] reads
//! datasets, and [`seed`] derives the seed of every random choice of a run.

pub mod column_names;
pub mod constraint;
mod conversation_score;
pub mod dataset;
pub mod disk;
pub mod evaluation;
pub mod evaluation_record;
pub mod files;
pub mod finish_reason;
pub mod group;
pub mod json;
pub mod message;
mod message_json;
mod named_keys;
pub mod outcome;
mod outside_call;
pub mod panics;
pub mod record;
mod rollout_report;
mod row_sources;
pub mod sample;
pub mod sample_input;
pub mod sample_outcome;
pub mod sampling_masks;
pub mod seed;
pub mod shown;
mod spool;
pub mod task;
mod template_kwargs;
pub mod tokens;
mod trace;
mod value_spool;
mod weight_files;
mod written_forms;

pub use column_names::{ColumnNames, KnownColumn, NoColumn};
pub use constraint::{Constraint, ConstraintState, SharedConstraint};
pub use conversation_score::{ConversationScore, StepValue};
pub use dataset::{BatchRows, DatasetReader, DatasetRow, Row, RowError, RowReader};
pub use evaluation::{Diagnosis, Evaluation, JudgeId, Provenance, Usage};
pub use evaluation_record::EvaluationRecord;
pub use finish_reason::{FinishReason, TrajectoryStatus};
pub use group::{Group, Member};
pub use json::{Columns, Json};
pub use message::{ContentPart, Media, Message, Role, ToolCall, last_turn};
pub use named_keys::named_keys;
pub use outcome::{Blame, Budget, CausedBy, Credit, MOST_REWARD, Metric, Outcome, OutcomeKind, Score};
pub use outside_call::{OutsideCall, OutsideCallEnding, OutsideCallKind};
pub use record::{SampleRecord, TrajectoryRecord};
pub use rollout_report::{RolloutFault, RolloutFaultKind, RolloutReport, RolloutStage, ToolEnding, ToolUse};
pub use row_sources::{RowSources, SourceRows};
pub use sample::{Opening, Sample, ToolStates, Trajectory};
pub use sample_input::{PriorVerdict, PriorVerdicts, SampleInput};
pub use sample_outcome::{LastCall, NotCalled, SampleOutcome, Timing};
pub use sampling_masks::{SamplingMask, SamplingMasks};
pub use shown::{Shown, ShownLines};
pub use spool::{Spool, SpoolError};
pub use task::{Reference, Task, TaskError};
pub use template_kwargs::check_template_kwargs;
pub use tokens::{KnownTokens, TokenCounts, Tokens};
pub use trace::{CallTrace, Trace, TurnTrace};
pub use value_spool::ValueSpool;
pub use weight_files::{WEIGHTS, WeightFiles, WeightFilesError};
pub use written_forms::{DurationForm, SizeForm, named_keys_schema};
