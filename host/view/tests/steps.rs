//! Where the time of a step went.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod place;

use place::{Place, Served, line};
use serde_json::{Value, json};

fn call(sample: u32, at: f64, error: Option<&str>) -> Value {
    json!({"for": format!("2.0.{sample}"), "plugin": "judge", "input": "a", "seed": 1, "kind": "chat",
        "endpoint": "big", "timestamp": 1000.0 + at, "waited": 0.5, "ran": at, "question_bytes": 1, "answer_bytes": 1,
        "ended": if error.is_some() { "failed" } else { "answered" }, "error": error})
}

#[test]
fn phases_requests_and_the_longest_samples_of_a_step_are_read() {
    let place = Place::new();
    let metrics = |step: u64| {
        json!({"step": step, "loss": 1, "time/step": 5, "time/generate": 3, "device_wait/total": 1,
            "time/timestamp": 1000 + 10 * step})
    };
    place.append("metrics.jsonl", &[1, 2, 4].map(|step| format!("{}\n", metrics(step))).concat());
    let calls = [call(0, 1.0, None), call(1, 2.0, Some("no answer"))].map(|call| format!("{call}\n")).concat();
    place.write("calls/step-000002.jsonl", &(calls + "no JSON\n"));
    let other = json!({"plugin": "other", "kind": "http", "endpoint": "GET x", "timestamp": 999, "waited": 0,
        "ran": 0.25, "ended": "answered", "input": "", "seed": 1});
    place.write("calls/step-000002.rank-1.jsonl", &format!("{other}\n"));
    let mut slow = line(2, 0, 1, "slow");
    slow["rollout"] = json!({"generating": [1.5, 0.5], "in_tools": [4.0],
        "tool_uses": [{"ending": "answered", "name": "search", "turn": 0, "seconds": 4.0}]});
    place.step(2, &[line(2, 0, 0, "quick"), slow]);
    let served = Served::new(&[place.run()]);
    let found = served.get("/api/runs/0/steps/2").json();
    let expected = json!({"device_wait/total": 1.0, "time/generate": 3.0, "time/step": 5.0});
    assert_eq!(found["metrics"], expected, "{found}");
    assert_eq!((&found["before"], &found["after"], &found["last"]), (&json!(1), &json!(4), &json!(4)));
    assert_eq!((&found["began"], &found["ended"]), (&json!(1010.0), &json!(1020.0)));
    let by = &found["calls_by"];
    assert_eq!((&by[0]["plugin"], &by[0]["count"], &by[0]["failed"]), (&json!("judge"), &json!(2), &json!(1)));
    assert_eq!((&by[0]["waited"], &by[0]["ran"], &by[0]["longest"]), (&json!(1.0), &json!(3.0), &json!(2.5)));
    assert_eq!(by[1]["endpoint"], "GET x");
    let order: Vec<&Value> = found["calls"].as_array().unwrap().iter().map(|call| &call["timestamp"]).collect();
    assert_eq!(order, [&json!(999.0), &json!(1001.0), &json!(1002.0)]);
    assert_eq!((&found["samples"][0]["id"], &found["samples"][1]["id"]), (&json!("2.0.1"), &json!("2.0.0")));
    let seconds = found["samples"][0]["seconds"].as_f64().unwrap();
    assert!((seconds - 6.000_201).abs() < 1e-9, "two turns, a tool and 201 µs of a plugin: {seconds}");
    assert_eq!((&found["samples_read"], &found["is_partial"]), (&json!(2), &json!(false)));
    let absent = served.get("/api/runs/0/steps/3");
    assert!(absent.status == 404 && absent.body.contains("metrics of steps 1 to 4"), "{}", absent.body);
    let bare = served.get("/api/runs/0/steps/4").json();
    assert_eq!((&bare["calls"], &bare["samples"], &bare["after"]), (&json!([]), &json!([]), &Value::Null));
}

#[test]
fn of_many_samples_and_requests_the_longest_are_shown() {
    let place = Place::new();
    place.append("metrics.jsonl", "{\"step\":1,\"time/step\":5}\n");
    let calls: String = (0..400).map(|at| format!("{}\n", call(at, f64::from(at * 7 % 400), None))).collect();
    place.write("calls/step-000001.jsonl", &calls);
    place.step(1, &(0..100).map(|sample| line(1, 0, sample * 37 % 100, "text")).collect::<Vec<_>>());
    let served = Served::new(&[place.run()]);
    let found = served.get("/api/runs/0/steps/1").json();
    let calls = found["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &found["calls_read"], &calls[0]["ran"]), (300, &json!(400), &json!(100.0)));
    let samples = found["samples"].as_array().unwrap();
    assert_eq!((samples.len(), &samples[0]["id"], &samples[39]["id"]), (40, &json!("1.0.99"), &json!("1.0.60")));
}
