//! What is found in the rewards of a run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod place;

use place::{Place, Served, line};
use serde_json::{Value, json};

/// A sample with a score of `format`, and a `judge` that gives the opposite or fails.
fn judged(step: u64, sample: u32, format: f64, reason: Option<&str>) -> Value {
    let mut line = line(step, 0, sample, &format!("a text of its own, number {step} {sample}"));
    let judge = match reason {
        Some(reason) => json!({"outcome": "fault", "score": null, "metrics": {}, "reason": reason, "elapsed_us": 1}),
        None => json!({"outcome": "scored", "score": 1.0 - format, "metrics": {}, "reason": null, "elapsed_us": 1}),
    };
    line["plugins"] = json!({
        "format": {"outcome": "scored", "score": format, "metrics": {}, "reason": null, "elapsed_us": 1},
        "judge": judge,
    });
    (line["reward"], line["outcome"]) = (json!(format), json!("scored"));
    line
}

#[test]
fn correlations_failures_alike_answers_and_trends_are_found() {
    let place = Place::new();
    let metrics = (1..=40).map(|step| {
        let (up, down, noise) = (f64::from(step) / 40.0, 1.0 - f64::from(step) / 40.0, f64::from(step * 7 % 5));
        json!({"step": step, "reward/format/mean": up, "reward/judge/mean": down, "response_length/mean": noise})
    });
    place.append("metrics.jsonl", &metrics.map(|line| format!("{line}\n")).collect::<String>());
    let score = |sample: u32| f64::from(sample % 10) / 10.0;
    let mut lines: Vec<Value> = (0..30).map(|sample| judged(1, sample, score(sample), None)).collect();
    let reasons = ["no answer within 12 s", "no answer within 305 s", "refused"];
    lines.extend((0..3).map(|at| judged(2, at, 0.5, Some(reasons[at as usize]))));
    let text = "I have thought about the question at length, and the answer is surely correct.";
    for (sample, wanted) in [(40, "4"), (41, "5"), (42, "5")] {
        let mut alike = judged(3, sample, 2.0, None);
        (alike["response"], alike["ground_truth"]) = (json!(format!("{text} {wanted}")), json!(wanted));
        lines.push(alike);
    }
    // The same answer to the same task is what it should be.
    for sample in [50, 51] {
        let mut same = judged(3, sample, 2.0, None);
        (same["response"], same["ground_truth"]) = (json!("seven and eight"), json!("15"));
        lines.push(same);
    }
    place.step(1, &lines);
    let served = Served::new(&[place.run()]);
    served.samples(38, &json!({}));
    let found = served.get("/api/runs/0/findings").json();
    let correlations = &found["correlations"];
    assert_eq!(correlations["names"], json!(["the reward", "format", "judge", "tokens", "turns", "time"]), "{found}");
    let r = |one: usize, other: usize| correlations["pairs"][one][other]["r"].as_f64();
    assert!((r(1, 0).unwrap() - 1.0).abs() < 1e-9 && (r(2, 1).unwrap() + 1.0).abs() < 1e-9, "{correlations}");
    assert_eq!((r(4, 0), &correlations["pairs"][2][1]["count"]), (None, &json!(35)));
    let failures = &found["failures"];
    assert_eq!(failures.as_array().unwrap().len(), 1, "{failures}");
    assert_eq!(failures[0]["plugin"], "judge");
    let expected = json!([
        {"reason": "no answer within # s", "count": 2, "id": "2.0.1"},
        {"reason": "refused", "count": 1, "id": "2.0.2"},
    ]);
    assert_eq!((&failures[0]["count"], &failures[0]["reasons"]), (&json!(3), &expected));
    let alike = found["alike"].as_array().unwrap();
    assert_eq!(alike.len(), 1, "{found}");
    assert_eq!((&alike[0]["count"], &alike[0]["wanted"]), (&json!(3), &json!(2)));
    assert_eq!(alike[0]["ids"], json!(["3.0.42", "3.0.41", "3.0.40"]));
    let trend = |name: &str| {
        let trend = found["trends"].as_array().unwrap().iter().find(|trend| trend["name"] == name).unwrap().clone();
        (trend["rises"] == true, trend["falls"] == true)
    };
    assert_eq!(trend("reward/format/mean"), (true, false));
    assert_eq!(trend("reward/judge/mean"), (false, true));
    assert_eq!(trend("response_length/mean"), (false, false));
}

#[test]
fn a_table_is_sorted_by_the_disagreement_of_two_rewards() {
    let place = Place::new();
    // The judge gives 1 - format: they disagree by |2 * format - 1|.
    let scores = [0.5, 0.9, 0.25, 0.0];
    let mut lines: Vec<Value> = scores.iter().zip(0..).map(|(score, at)| judged(1, at, *score, None)).collect();
    lines.push(judged(1, 4, 0.75, Some("failed")));
    place.step(1, &lines);
    let served = Served::new(&[place.run()]);
    let ask = |filter: Value| {
        let page = served.samples(5, &json!({"filter": filter, "sort": "disagreement", "descending": true}));
        let id = |row: &Value| row["id"].as_str().unwrap().rsplit('.').next().unwrap().to_owned();
        page["rows"].as_array().unwrap().iter().map(id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ask(json!({"plugin": "format", "against": "judge"})), "3 1 2 0 4", "the one without a score is last");
    assert_eq!(ask(json!({"plugin": "judge"})), "3 1 2 0 4");
    assert_eq!(ask(json!({"plugin": "format"})), "4 3 2 1 0", "a reward is its own score: all differ by 0");
    assert_eq!(ask(json!({"plugin": "format", "against": "absent"})), "4 3 2 1 0", "none has the number");
}

#[test]
fn a_run_without_samples_has_no_findings() {
    let place = Place::new();
    let served = Served::new(&[place.run()]);
    let found = served.get("/api/runs/0/findings").json();
    assert_eq!((&found["failures"], &found["alike"], &found["trends"]), (&json!([]), &json!([]), &json!([])));
    assert_eq!(found["compared_from"], Value::Null);
}
