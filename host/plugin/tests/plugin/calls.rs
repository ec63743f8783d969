//! The records of requests to servers and of programs that plugins run.

use crate::common::{guest, sample, sandbox};
use gavel_data::{Message, OutsideCall, OutsideCallEnding, Role, Sample, Task, Trajectory};
use gavel_plugin::{CallLog, Grants, Limits, OutsideWaits, Plugin, PluginSpec, ProgramSpec, Sandbox, Tape};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A sandbox that notes requests with their texts, and records their answers in a folder.
fn noting(folder: &Path) -> (Sandbox, CallLog) {
    let (sandbox, log) = (sandbox(), CallLog::new(true));
    sandbox.use_tape(Tape::record_as(folder.into(), 0, Some(log.clone())));
    (sandbox, log)
}

fn score(sandbox: &Sandbox, spec: PluginSpec, sample: Arc<Sample>) {
    let scored = async {
        let plugin = Plugin::load(sandbox, spec).await.unwrap();
        plugin.evaluate(&[sample.into()], 5, &OutsideWaits::default().made_for(Some("2.1.0".into()))).await
    };
    sandbox.handle().block_on(scored);
}

fn shown(call: &OutsideCall, fields: &[&str]) -> Value {
    let call = serde_json::to_value(call).unwrap();
    fields.iter().map(|field| call[*field].clone()).collect()
}

/// Answers `/ok` with the bytes `hello`, and all other paths not at all.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            match line.contains(" /ok") {
                true => write!(stream, "HTTP/1.1 203 OK\r\ncontent-length: 5\r\n\r\nhello").unwrap(),
                false => silent.push(stream),
            }
        }
    });
    url
}

fn fetching(urls: &[String], granted: &str, deadline: Duration) -> PluginSpec {
    let limits = Limits { deadline, cpu: Duration::from_secs(60), ..Limits::default() };
    let grants = Grants { http: vec![granted.to_owned()], ..Grants::default() };
    let params = serde_json::from_value(json!({ "urls": urls })).unwrap();
    PluginSpec { params, limits, grants, ..PluginSpec::new("fetch", guest("fetch")) }
}

#[test]
fn a_request_to_a_server_is_noted_without_its_query() {
    let (folder, url) = (tempfile::tempdir().unwrap(), server());
    let (sandbox, log) = noting(folder.path());
    // A request that no grant covers is not sent.
    let urls = [format!("{url}/ok?key=s3cret-of-the-plugin"), "http://10.0.0.1/ok".into()];
    score(&sandbox, fetching(&urls, &url, Duration::from_secs(60)), sample());
    let calls = log.take().calls;
    assert_eq!(calls.len(), 1, "{calls:?}");
    let fields = ["for", "plugin", "seed", "kind", "endpoint", "ended", "status", "question_bytes", "question"];
    let endpoint = format!("GET {url}/ok");
    assert_eq!(shown(&calls[0], &fields), json!(["2.1.0", "fetch", 5, "http", endpoint, "answered", 203, 0, ""]));
    assert_eq!(shown(&calls[0], &["answer_bytes", "answer", "error"]), json!([5, "hello", null]));
    assert!(!serde_json::to_string(&calls).unwrap().contains("s3cret"), "{calls:?}");
}

#[test]
fn a_request_that_outlives_its_call_is_cancelled_and_a_server_that_is_gone_unavailable() {
    let (folder, url) = (tempfile::tempdir().unwrap(), server());
    let (sandbox, log) = noting(folder.path());
    // A machine may be too slow to send it within the first deadline; the host drops what a call has left when it comes
    // to it.
    let calls = [300, 3_000, 30_000].into_iter().find_map(|deadline| {
        let deadline = Duration::from_millis(deadline);
        score(&sandbox, fetching(&[format!("{url}/silent")], &url, deadline), sample());
        let taken = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(10));
            log.take().calls
        });
        taken.take(3000).find(|calls| !calls.is_empty())
    });
    let calls = calls.expect("a request that was sent is noted");
    assert_eq!(calls.iter().map(|call| call.ended).collect::<Vec<_>>(), [OutsideCallEnding::Cancelled]);

    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = format!("http://{gone}");
    score(&sandbox, fetching(std::slice::from_ref(&gone), &gone, Duration::from_secs(60)), sample());
    let calls = log.take().calls;
    assert_eq!(calls.len(), 1);
    assert_eq!(shown(&calls[0], &["ended", "error", "answer_bytes"]), json!(["unavailable", "ConnectionRefused", 0]));
}

#[test]
fn each_ending_of_a_program_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let (sandbox, log) = noting(folder.path());
    let limits = Limits { cpu: Duration::from_secs(1), memory: 16 << 20, log: 1 << 16, ..Limits::default() };
    sandbox.add_program(ProgramSpec { name: "child".into(), path: guest("child"), limits }).unwrap();
    let grants = Grants { exec: vec!["child".into()], ..Grants::default() };
    let params = serde_json::from_value(json!({})).unwrap();
    let spec = PluginSpec { params, grants, ..PluginSpec::new("runs", guest("runs")) };
    let columns = serde_json::from_value(json!({"prompt": "?"})).unwrap();
    let messages = vec![Message::new(Role::Assistant, "echo exit bomb panic")];
    let task = Arc::new(Task::from_row(columns, 0, "t").unwrap());
    score(&sandbox, spec, Arc::new(Sample::new(task, 0, vec![Trajectory::of(messages)])));
    let mut calls = log.take().calls;
    let job = |call: &OutsideCall| {
        let question: Value = serde_json::from_str(call.question.as_ref().unwrap()).unwrap();
        assert_eq!(question["stdin"], format!("input of {}", question["args"][0].as_str().unwrap()));
        question["args"][0].as_str().unwrap().to_owned()
    };
    // They run at once, and end in any order.
    calls.sort_by_key(job);
    let ends: Vec<Value> = calls
        .iter()
        .map(|call| json!([job(call), shown(call, &["for", "kind", "endpoint", "ended", "status"])]))
        .collect();
    let end = |job: &str, ended: &str, status: Value| json!([job, ["2.1.0", "exec", "child", ended, status]]);
    let expected = [
        end("bomb", "out-of-budget", Value::Null),
        end("echo", "answered", json!(0)),
        end("exit", "answered", json!(1)),
        end("panic", "trapped", Value::Null),
    ];
    assert_eq!(ends, expected);
    let printed = r#"["child", "echo"] input of echo"#;
    let answer: Value = serde_json::from_str(calls[1].answer.as_ref().unwrap()).unwrap();
    assert_eq!(answer, json!({"stdout": printed, "stderr": ""}));
    assert_eq!(calls[1].question_bytes as usize, "echo".len() + "input of echo".len());
    assert_eq!((calls[1].answer_bytes as usize, calls[0].error.as_deref()), (printed.len(), Some("memory")));
}
