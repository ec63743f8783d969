//! The records of a `.wandb` file that a run has: parts of `wandb/proto/wandb_internal.proto` of wandb 0.31, whose fields
//! have the same numbers in all versions. A field that is left out has its default.

use prost::Message;

/// One of its fields is set, beside `num` and `info`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Record {
    #[prost(int64, tag = "1")]
    pub(super) num: i64,
    #[prost(message, optional, tag = "2")]
    pub(super) history: Option<HistoryRecord>,
    #[prost(message, optional, tag = "3")]
    pub(super) summary: Option<SummaryRecord>,
    #[prost(message, optional, tag = "17")]
    pub(super) run: Option<RunRecord>,
    #[prost(message, optional, tag = "18")]
    pub(super) exit: Option<RunExitRecord>,
    #[prost(message, optional, tag = "21")]
    pub(super) header: Option<HeaderRecord>,
    #[prost(message, optional, tag = "200")]
    pub(super) info: Option<RecordInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RecordInfo {
    #[prost(string, tag = "1")]
    pub(super) stream_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderRecord {
    #[prost(message, optional, tag = "1")]
    pub(super) version_info: Option<VersionInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionInfo {
    #[prost(string, tag = "1")]
    pub(super) producer: String,
    #[prost(string, tag = "2")]
    pub(super) min_consumer: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RunRecord {
    #[prost(string, tag = "1")]
    pub(super) run_id: String,
    #[prost(string, tag = "3")]
    pub(super) project: String,
    #[prost(message, optional, tag = "4")]
    pub(super) config: Option<ConfigRecord>,
    #[prost(string, tag = "8")]
    pub(super) display_name: String,
    #[prost(string, tag = "13")]
    pub(super) host: String,
    #[prost(message, optional, tag = "17")]
    pub(super) start_time: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ConfigRecord {
    #[prost(message, repeated, tag = "1")]
    pub(super) update: Vec<Item>,
}

/// A value of a configuration, of a step or of a summary.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Item {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) nested_key: Vec<String>,
    #[prost(string, tag = "16")]
    pub(super) value_json: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HistoryRecord {
    #[prost(message, repeated, tag = "1")]
    pub(super) item: Vec<Item>,
    #[prost(message, optional, tag = "2")]
    pub(super) step: Option<HistoryStep>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HistoryStep {
    #[prost(int64, tag = "1")]
    pub(super) num: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SummaryRecord {
    #[prost(message, repeated, tag = "1")]
    pub(super) update: Vec<Item>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RunExitRecord {
    #[prost(int32, tag = "1")]
    pub(super) exit_code: i32,
    #[prost(int32, tag = "2")]
    pub(super) runtime: i32,
}

/// `google.protobuf.Timestamp`
#[derive(Clone, PartialEq, Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}
