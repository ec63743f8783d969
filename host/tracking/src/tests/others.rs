use super::fake::{Fake, Mode};
use super::*;
use crate::{MetricsListener, RunEvent, TrackerKind, send};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

#[test]
fn trackio_keeps_each_entry_once() {
    let kept = Arc::new(Mutex::new(BTreeMap::<String, Value>::new()));
    let shared = kept.clone();
    let fake = Fake::start(move |asked| match asked.path.as_str() {
        "/version" => (200, json!({"version": "0.43.0", "api_version": 1})),
        "/api/bulk_log" => {
            assert_eq!(asked.body["kwargs"]["hf_token"], Value::Null);
            for log in asked.body["kwargs"]["logs"].as_array().unwrap() {
                shared.lock().unwrap().insert(log["log_id"].as_str().unwrap().to_owned(), log.clone());
            }
            (200, json!({"data": null}))
        }
        other => panic!("{other}"),
    });
    let run = Run::new("seed = 7\n");
    run.log(1, ",\"val/accuracy\":0.25");
    run.log(2, "");
    let table = TrackerTable { api_key_env: Some("PATH".into()), ..server(TrackerKind::Trackio, &fake) };
    let table = TrackerTable { project: Some("sums".into()), ..table };
    send_all(&mut run.link(&table)).unwrap();
    let key = std::env::var("PATH").unwrap().trim().to_owned();
    assert!(fake.take().iter().all(|asked| asked.key.as_ref() == Some(&key)));
    // Killed before it was noted, so that it is sent again.
    let mut state: Value = serde_json::from_str(&run.kept("trackio").unwrap()).unwrap();
    state.as_object_mut().unwrap().remove("last");
    fs::write(layout::tracker(&run.path, "trackio"), state.to_string()).unwrap();
    send_all(&mut run.link(&table)).unwrap();
    assert_eq!(fake.take().len(), 1);
    let kept = kept.lock().unwrap();
    let mut logs: Vec<_> = kept.values().collect();
    logs.sort_by_key(|log| log["step"].as_u64());
    assert_eq!(logs.len(), 2);
    assert_eq!(
        (&logs[0]["project"], &logs[0]["run"], &logs[0]["config"]),
        (&json!("sums"), &json!("demo"), &json!({"seed": 7}))
    );
    assert_eq!(logs[0]["metrics"], json!({"reward/mean": 1.5, "val/accuracy": 0.25}));
    assert_eq!(logs[1]["metrics"], json!({"reward/mean": 2.5}));
    assert_eq!(logs[0]["run_id"], logs[1]["run_id"]);
}

#[test]
fn another_version_of_trackio_is_refused() {
    let fake = Fake::start(|_| (200, json!({"api_version": 2})));
    let run = Run::new("");
    let error = send_all(&mut run.link(&server(TrackerKind::Trackio, &fake))).unwrap_err().to_string();
    assert!(
        error.ends_with("/version gave an answer that cannot be used: its API has version 2, and gavel knows 1"),
        "{error}"
    );
    let fake = Fake::start(|asked| match asked.path.as_str() {
        "/version" => (200, json!({"api_version": 1})),
        _ => (200, json!({"error": "no write access", "data": null})),
    });
    run.log(1, "");
    let error = send_all(&mut run.link(&server(TrackerKind::Trackio, &fake))).unwrap_err().to_string();
    assert!(error.ends_with("/api/bulk_log answered 200: \"no write access\""), "{error}");
    assert_eq!(crate::feed::count_lacking(&run.path, None).unwrap(), 1);
}

#[test]
fn a_webhook_is_told_the_end_once() {
    let fake = Fake::start(|_| (200, json!("ok")));
    let run = Run::new("[train]\nsteps = 9\n");
    run.log(3, ",\"val/accuracy\":0.25");
    let table = server(TrackerKind::Webhook, &fake);
    send_all(&mut run.link(&table)).unwrap();
    assert_eq!(fake.take(), []);
    run.end("failed");
    fake.set(Mode::Fails);
    assert!(send_all(&mut run.link(&table)).is_err());
    fake.set(Mode::Garbage);
    fake.take();
    for _ in 0..2 {
        send_all(&mut run.link(&table)).unwrap();
    }
    let asked = fake.take();
    assert_eq!((asked.len(), asked[0].path.as_str()), (1, "/"));
    let body = asked[0].body.as_object().unwrap();
    for (name, value) in [
        ("event", json!("failed")),
        ("run", json!("demo")),
        ("step", json!(3)),
        ("steps", json!(9)),
        ("accuracy", json!(0.25)),
        ("reward", json!(3.5)),
        ("at", json!(1_700_000_100.0)),
        ("why", json!("out of memory\nhint: buy some")),
        ("text", json!("run demo failed after step 3/9: out of memory")),
    ] {
        assert_eq!(body.get(name), Some(&value), "{name}");
    }
    let table = TrackerTable { on: Some(vec![RunEvent::Ended]), name: Some("quiet".into()), ..table };
    let sent = send(&run.path, &[table]).unwrap();
    assert!(sent[0].error.is_none() && !sent[0].takes_numbers);
    assert_eq!(fake.take(), []);
}

#[test]
fn one_tracker_does_not_hold_up_another() {
    let (slow, good) = (Fake::start(|_| (200, json!({}))), Fake::start(|_| (200, json!("ok"))));
    slow.set(Mode::Hangs);
    let run = Run::new("");
    run.log(1, "");
    let times = Times { request: Duration::from_secs(600), end: Duration::from_secs(600), ..TIMES };
    let tables = [server(TrackerKind::Mlflow, &slow), server(TrackerKind::Webhook, &good)];
    let tracking = Tracking::start_within(&run.path, &tables, None, times).unwrap().unwrap();
    wait_until("a request", || !slow.take().is_empty());
    run.end("ended");
    wait_until("the end", || good.take().iter().any(|asked| asked.body["event"] == "ended"));
    // Not dropped: that would wait for the other one.
    std::mem::forget(tracking);
}

#[test]
fn two_processes_do_not_send_one_run() {
    let fake = Fake::start(|_| (200, json!("ok")));
    let run = Run::new("");
    run.log(1, "");
    let table = server(TrackerKind::Webhook, &fake);
    let lock = crate::sent::SendLock::take(&run.path).unwrap();
    assert!(matches!(send(&run.path, std::slice::from_ref(&table)), Err(SendError::Busy { .. })));
    let tracking = run.tracking(&table, TIMES);
    drop(lock);
    // It waits for the other one.
    wait_until("its state", || run.kept("webhook").is_some());
    drop(tracking);
    send(&run.path, &[table]).unwrap();
}

#[test]
fn prometheus_sees_a_run_under_way() {
    let run = Run::new("[train]\nsteps = 9\n");
    run.log(2, "");
    let listener = MetricsListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let tracking = Tracking::start_within(&run.path, &[], Some(&listener), TIMES).unwrap().unwrap();
    let mut stream = TcpStream::connect(listener.address().unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("200 OK") && text.contains("application/openmetrics-text"), "{text}");
    assert!(text.contains("gavel_run_metric{name=\"reward/mean\"} 2.5"), "{text}");
    drop(tracking);
    assert!(Tracking::start(&run.path, &[], None).unwrap().is_none());
}
