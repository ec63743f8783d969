//! Evaluations: the validations of runs, and saved answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod place;

use gavel_view::View;
use place::{Place, Served, line};
use serde_json::{Value, json};

/// An answer in the record of a validation.
fn recorded(row: u64, sample: u32, score: Option<f64>) -> Value {
    let mut line = line(2, row, sample, &format!("answer {sample} to {row}"));
    line["task_id"] = json!(format!("validation/{row}"));
    line["data_source"] = json!("math");
    (line["reward"], line["outcome"]) = (json!(score), json!(if score.is_some() { "scored" } else { "fault" }));
    line["plugins"]["answer"]["score"] = json!(score);
    line
}

#[test]
fn validations_and_saved_answers_are_read() {
    let place = Place::new();
    place.write("config.toml", "[data]\naccuracy = \"answer\"\n");
    let mut second = recorded(1, 0, Some(1.0));
    second["trajectory"] = json!(1);
    let lines = [recorded(0, 0, Some(1.0)), recorded(0, 1, None), recorded(1, 0, Some(0.5)), second];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("validation/trajectories/step-000002.jsonl", &(text + "no JSON\n"));
    let saved = place.run().parent().unwrap().join("answers.jsonl");
    let answer = |id: Value, sample: u64| {
        json!({"id": id, "data_source": "math", "prompt": [{"role": "user", "content": "<b>?</b>"}], "sample": sample,
            "response": "<i>4</i>", "finish_reason": "stop", "response_length": 7, "reward": 1, "outcome": "scored",
            "reason": null, "plugins": {"answer": {"outcome": "scored", "score": 1}}})
    };
    let answers = [answer(json!("validation/0"), 0), answer(json!("validation/0"), 1), answer(json!(17), 0)];
    std::fs::write(&saved, answers.map(|line| format!("{line}\n")).concat()).unwrap();
    let served = Served::new(&[place.run(), saved.clone()]);
    assert_eq!(served.get("/api/runs").json().as_array().unwrap().len(), 1);
    let list = served.get("/api/evaluations").json();
    assert_eq!((&list[0]["name"], &list[0]["step"]), (&json!("run, after step 2"), &json!(2)), "{list}");
    assert_eq!((&list[1]["name"], &list[1]["run"]), (&json!("answers.jsonl"), &Value::Null), "{list}");
    let of_run = served.get("/api/evaluations/0").json();
    assert_eq!((&of_run["accuracy"], &of_run["damaged"]), (&json!("answer"), &json!(1)), "{of_run}");
    let found = of_run["answers"].as_array().unwrap();
    assert_eq!(found.len(), 3, "a sample of several trajectories is one answer: {of_run}");
    assert_eq!((&found[0]["row"], &found[0]["scores"]["answer"]), (&json!("validation/0"), &json!(1.0)));
    assert_eq!((&found[1]["reward"], &found[1]["scores"]), (&Value::Null, &json!({"answer": null})));
    let of_file = served.get("/api/evaluations/1").json();
    assert_eq!((&of_file["answers"][2]["row"], &of_file["answers"][2]["tokens"]), (&json!("17"), &json!(7)));
    let texts = served.post("/api/evaluations/1", &json!({"row": "validation/0", "source": "math"})).json();
    assert_eq!((texts.as_array().unwrap().len(), &texts[1]["response"]), (2, &json!("<i>4</i>")));
    let number = served.post("/api/evaluations/1", &json!({"row": "17", "source": "math"})).json();
    assert_eq!(number.as_array().unwrap().len(), 1);
    let of_row = served.post("/api/evaluations/0", &json!({"row": "validation/1", "source": "math"})).json();
    assert_eq!(of_row[0]["messages"][0]["content"], "answer 0 to 1");
    let none = served.post("/api/evaluations/0", &json!({"row": "validation/1", "source": "code"})).json();
    assert_eq!(none, json!([]));
    assert_eq!(served.get("/api/evaluations/2").status, 404);
    // Answers alone are shown too; other files are refused.
    let other = place.path("answers.jsonl");
    std::fs::copy(&saved, &other).unwrap();
    let alone = Served::new(&[saved, other.clone()]);
    assert_eq!(alone.get("/api/runs").json(), json!([]));
    assert_eq!(alone.get("/api/evaluations").json()[1]["name"], json!(other.display().to_string()));
    let error = View::open(&[place.path("config.toml")]).err().unwrap().to_string();
    assert!(error.contains("no JSON Lines\nhint: name the folder of a run, or a file that"), "{error}");
}
