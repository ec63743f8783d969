//! Tables of samples: filters, orders, pages and search, compared with a count over the files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod place;

use place::{Place, Served, line};
use serde_json::{Value, json};

/// Three steps of 8 groups of 10 samples.
fn lines() -> Vec<(u64, Vec<Value>)> {
    let words = ["alpha \"quoted\"", "Beta\nbeta", "größer", "back\\slash", "user", "gamma"];
    let step = |step: u64| {
        let samples = (0..8).flat_map(|group| (0..10).map(move |sample| (group, sample)));
        let line =
            |(group, sample): (u64, u32)| line(step, group, sample, words[((group + u64::from(sample)) % 6) as usize]);
        (step, samples.map(line).collect())
    };
    (1..=3).map(step).collect()
}

type Passes = Box<dyn Fn(&Value) -> bool>;

fn recorded() -> (Place, Vec<Value>) {
    let place = Place::new();
    let all = lines();
    all.iter().for_each(|(step, lines)| place.step(*step, lines));
    (place, all.into_iter().flat_map(|(_, lines)| lines).collect())
}

#[test]
fn filters_count_as_the_files_do() {
    let (place, all) = recorded();
    let served = Served::new(&[place.run()]);
    let reward = |line: &Value| line["reward"].as_f64();
    let cases: Vec<(Value, Passes)> = vec![
        (json!({}), Box::new(|_| true)),
        (json!({"step_min": 2}), Box::new(|line| line["step"].as_u64() >= Some(2))),
        (json!({"step_min": 2, "step_max": 2}), Box::new(|line| line["step"] == 2)),
        (json!({"reward_min": 0.5}), Box::new(move |line| reward(line).is_some_and(|reward| reward >= 0.5))),
        (
            json!({"reward_min": 0.25, "reward_max": 0.75}),
            Box::new(move |line| reward(line).is_some_and(|reward| (0.25..=0.75).contains(&reward))),
        ),
        (json!({"length_max": 3}), Box::new(|line| line["response_length"].as_u64() <= Some(3))),
        (
            json!({"outcomes": ["fault", "abstained"]}),
            Box::new(|line| line["outcome"] == "fault" || line["outcome"] == "abstained"),
        ),
        (json!({"finish": ["length"]}), Box::new(|line| line["finish_reason"] == "length")),
        (
            json!({"sources": ["math"], "step_max": 1}),
            Box::new(|line| line["data_source"] == "math" && line["step"] == 1),
        ),
        (json!({"sources": ["none"]}), Box::new(|_| false)),
        (
            json!({"plugin": "answer", "score_min": 1.0}),
            Box::new(|line| line["plugins"]["answer"]["score"].as_f64() >= Some(1.0)),
        ),
        (
            json!({"plugin": "answer", "outcomes": ["scored"]}),
            Box::new(|line| line["plugins"]["answer"]["outcome"] == "scored"),
        ),
        (json!({"plugin": "absent"}), Box::new(|_| false)),
    ];
    for (filter, passes) in cases {
        let page = served.samples(240, &json!({"filter": filter, "limit": 500}));
        let expected: Vec<&Value> = all.iter().filter(|line| passes(line)).map(|line| &line["id"]).collect();
        let found: Vec<&Value> = page["rows"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
        assert_eq!(found, expected, "{filter}");
        assert_eq!(page["matched"], expected.len(), "{filter}");
    }
    let wrong = served.post("/api/runs/0/samples", &json!({"filter": {"outcomes": ["good"]}}));
    assert_eq!((wrong.status, wrong.json()["error"].as_str().unwrap().contains("there is no outcome")), (400, true));
}

#[test]
fn orders_are_total_and_pages_have_each_row_once() {
    let (place, all) = recorded();
    let served = Served::new(&[place.run()]);
    for (sort, field) in
        [("reward", "reward"), ("advantage", "advantage"), ("length", "response_length"), ("time", "elapsed_us")]
    {
        for descending in [false, true] {
            let request =
                |offset: usize| json!({"sort": sort, "descending": descending, "offset": offset, "limit": 37});
            let mut rows: Vec<Value> = Vec::new();
            while rows.len() < all.len() {
                let page = served.samples(240, &request(rows.len()));
                rows.extend(page["rows"].as_array().unwrap().iter().cloned());
            }
            let mut ids: Vec<String> = rows.iter().map(|row| row["id"].to_string()).collect();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), all.len(), "{sort}");
            let keys: Vec<Option<f64>> = rows.iter().map(|row| row[field].as_f64()).collect();
            let without = keys.iter().position(Option::is_none).unwrap_or(keys.len());
            assert!(keys[without..].iter().all(Option::is_none), "{sort}: rows without it come last");
            let is_ordered =
                |one: &Option<f64>, other: &Option<f64>| if descending { one >= other } else { one <= other };
            assert!(keys[..without].is_sorted_by(is_ordered), "{sort} {descending}: {keys:?}");
        }
    }
    assert_eq!(served.post("/api/runs/0/samples", &json!({"sort": "mood"})).status, 400);
    let beyond = served.samples(240, &json!({"offset": 10_000}));
    assert_eq!((beyond["rows"].as_array().unwrap().len(), beyond["matched"].as_u64()), (0, Some(240)));
}

#[test]
fn texts_are_found_in_messages_alone() {
    let (place, all) = recorded();
    let served = Served::new(&[place.run()]);
    let count = |word: &str, fold: bool| {
        let folded = |text: &str| if fold { text.to_ascii_lowercase() } else { text.to_owned() };
        let is_in = |line: &&Value| {
            let texts = [&line["messages"][0]["content"], &line["prompt"][0]["content"]];
            texts.iter().any(|text| folded(text.as_str().unwrap()).contains(&folded(word)))
        };
        all.iter().filter(is_in).count()
    };
    for word in
        ["alpha \"quoted\"", "beta", "Beta\nb", "größer", "back\\slash", "user", "What is", "train/1", "nowhere", "a"]
    {
        for fold in [false, true] {
            let request = json!({"filter": {"text": word, "ignore_case": fold}, "limit": 500});
            let page = served.samples(240, &request);
            assert_eq!(page["matched"], count(word, fold), "{word:?} {fold}");
            assert_eq!(page["search"]["searched"], 240);
        }
    }
    let page = served.samples(240, &json!({"filter": {"text": "gamma", "step_min": 3}}));
    assert_eq!(page["search"]["candidates"], 80, "only what passes the rest of the filter is searched");
}

#[test]
fn a_run_is_followed_as_it_records_and_is_resumed() {
    let (place, _) = recorded();
    let served = Served::new(&[place.run()]);
    assert_eq!(served.samples(240, &json!({}))["index"]["generation"], 0);
    let search = json!({"filter": {"text": "later"}});
    assert_eq!(served.samples(240, &search)["matched"], 0);
    place.step(4, &[line(4, 0, 0, "later")]);
    assert_eq!(served.samples(241, &search)["rows"][0]["id"], "4.0.0");
    // Resumed from step 2: later files are removed, and written again.
    for step in [3, 4] {
        std::fs::remove_file(place.path(&format!("trajectories/step-{step:06}.jsonl"))).unwrap();
    }
    place.step(3, &[line(3, 0, 0, "other"), line(3, 0, 1, "later")]);
    let page = served.samples(162, &search);
    assert_eq!((&page["rows"][0]["id"], page["matched"].as_u64()), (&json!("3.0.1"), Some(1)));
    assert_eq!(served.get("/api/runs/0/samples/4.0.0").status, 404);
}

#[test]
fn tokens_have_the_texts_of_the_runs_tokenizer() {
    let (place, _) = recorded();
    let served = Served::new(&[place.run()]);
    let ask = || served.post("/api/runs/0/tokens", &json!({"ids": [3 + 0xc3, 3 + 0xb6, 3 + 0x3c, 2, 9999]}));
    let unknown = ask();
    let error = unknown.json()["error"].as_str().unwrap().to_owned();
    assert!(unknown.status == 404 && error.contains("names no model"), "{error}");
    // The model that it began with is named by its path from where the run was started: the folder above the run.
    let parent = place.run().parent().unwrap().to_owned();
    place.write("config.toml", "[model]\npath = \"models/small\"\n");
    assert!(ask().json()["error"].as_str().unwrap().contains("no tokenizer.json in models/small"));
    gavel_text::Tokenizer::byte_level().save(&parent.join("models/small")).unwrap();
    let found = ask().json();
    for (id, bytes) in [("198", "c3"), ("185", "b6"), ("63", "3c"), ("2", "3c7c696d5f656e647c3e")] {
        assert_eq!(found["bytes"][id], bytes, "{found}");
    }
    assert_eq!((&found["bytes"]["9999"], &found["special"]), (&Value::Null, &json!([2])), "{found}");
    assert!(found["from"].as_str().unwrap().ends_with("models/small"), "{found}");
    let many: Vec<u32> = (0..10_001).collect();
    assert_eq!(served.post("/api/runs/0/tokens", &json!({"ids": many})).status, 400);
    // A checkpoint of the run comes first.
    gavel_text::Tokenizer::byte_level().save(&place.path("checkpoints/step-000002")).unwrap();
    let anew = Served::new(&[place.run()]);
    let found = anew.post("/api/runs/0/tokens", &json!({"ids": [68]})).json();
    assert_eq!(found["bytes"], json!({"68": "41"}));
    assert!(found["from"].as_str().unwrap().ends_with("checkpoints/step-000002"), "{found}");
}

#[test]
fn a_sample_of_several_trajectories_is_one() {
    let place = Place::new();
    let mut second = line(1, 0, 0, "second");
    second["trajectory"] = json!(1);
    second["opening"] = json!({"speaker": "critic", "messages": [{"role": "user", "content": "judge"}]});
    place.step(1, &[line(1, 0, 0, "first"), second, line(1, 0, 1, "other")]);
    let served = Served::new(&[place.run()]);
    let page = served.samples(3, &json!({"filter": {"speakers": ["critic"]}}));
    assert_eq!((page["matched"].as_u64(), page["rows"][0]["trajectory"].as_u64()), (Some(1), Some(1)));
    let sample = served.get("/api/runs/0/samples/1.0.0").json();
    assert_eq!((sample["trajectories"].as_array().unwrap().len(), sample["group"].as_array().unwrap().len()), (2, 2));
    assert_eq!((&sample["before"], &sample["after"]), (&Value::Null, &json!("1.0.1")));
    let counts = served.post("/api/runs/0/histogram", &json!({"ranges": 5})).json();
    let of_range = &counts["ranges"][0];
    let binned: u64 = of_range["bins"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(binned + of_range["unscored"].as_u64().unwrap(), 2, "{counts}");
}
