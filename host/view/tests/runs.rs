//! Runs: their list, their metrics while they are written, their details, and folders that are none.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod place;

use gavel_view::{View, export};
use place::{HOSTILE, Place, Served, line};
use serde_json::json;

#[test]
fn metrics_are_followed_and_a_torn_line_waits() {
    let place = Place::new();
    place.append("metrics.jsonl", "{\"step\":1,\"loss\":0.5,\"time/timestamp\":100}\nnonsense\n{\"step\":2,\"lo");
    let served = Served::new(&[place.run()]);
    let runs = served.get("/api/runs").json();
    assert_eq!((&runs[0]["name"], &runs[0]["rows"], &runs[0]["damaged"]), (&json!("run"), &json!(1), &json!(1)));
    assert_eq!((&runs[0]["metrics"], &runs[0]["error"]), (&json!(["loss"]), &json!(null)));
    let ask = |after: u64, generation: u64| {
        served
            .post("/api/runs/0/series", &json!({"names": ["loss", "none"], "after": after, "generation": generation}))
            .json()
    };
    let first = ask(0, 0);
    assert_eq!(first["curves"]["loss"], json!({"x": [1.0], "step": [1.0], "y": [0.5], "is_thinned": false}));
    assert_eq!(first["curves"]["none"]["x"], json!([]));
    place.append("metrics.jsonl", "ss\":0.25,\"time/timestamp\":101.5}\n");
    let added = ask(1, first["generation"].as_u64().unwrap());
    assert_eq!((&added["after"], &added["curves"]["loss"]["y"]), (&json!(1), &json!([0.25])));
    let by_time = served.post("/api/runs/0/series", &json!({"names": ["loss"], "axis": "time"})).json();
    assert_eq!(by_time["curves"]["loss"]["x"], json!([0.0, 1.5]));
    // Resumed: written anew.
    place.write("metrics.jsonl", "{\"step\":1,\"loss\":0.5}\n");
    let anew = ask(2, first["generation"].as_u64().unwrap());
    assert_eq!((&anew["after"], &anew["curves"]["loss"]["y"]), (&json!(0), &json!([0.5])));
}

#[test]
fn folders_that_are_no_runs_and_runs_that_are_gone_are_named() {
    let place = Place::new();
    let parent = place.run().parent().unwrap().to_owned();
    std::fs::create_dir(parent.join("empty")).unwrap();
    for folder in ["empty", "absent"] {
        let error = View::open(&[parent.join(folder)]).err().unwrap().to_string();
        assert!(error.contains("is no run") && error.contains("hint: name the folder of a run"), "{error}");
    }
    std::fs::write(place.path("run.json"), r#"{"format":99}"#).unwrap();
    let error = View::open(&[place.run()]).err().unwrap().to_string();
    assert!(error.contains("newer version of gavel"), "{error}");
    std::fs::remove_file(place.path("run.json")).unwrap();
    // The folder of runs, and the same run again.
    let served = Served::new(&[parent, place.run()]);
    assert_eq!(served.get("/api/runs").json().as_array().unwrap().len(), 1);
    let page = served.samples(0, &json!({}));
    assert_eq!((page["matched"].as_u64(), page["index"]["error"].is_null()), (Some(0), true), "it recorded no samples");
    std::fs::remove_dir_all(place.run()).unwrap();
    let runs = served.get("/api/runs").json();
    assert!(runs[0]["error"].as_str().unwrap().contains("is no run"), "{runs}");
    let details = served.get("/api/runs/0");
    assert!(details.status == 500 && details.body.contains("is no run"), "{}", details.body);
    assert_eq!(served.get("/api/runs/0/samples/1.0.0").status, 404);
}

#[test]
fn a_torn_line_of_samples_is_counted_and_left_out() {
    let place = Place::new();
    place.write("trajectories/step-000001.jsonl", &format!("{}\n{{}}\n{}", line(1, 0, 0, "a"), "{\"id\":\"1.0.1\""));
    let served = Served::new(&[place.run()]);
    let page = served.samples(1, &json!({}));
    assert_eq!((page["index"]["damaged"].as_u64(), page["matched"].as_u64()), (Some(2), Some(1)));
}

#[test]
fn two_runs_are_compared() {
    let (one, other) = (Place::new(), Place::new());
    other.write("config.toml", "seed = 2\n[train]\nsteps = 4\n[log]\nname = \"run\"\n");
    one.append("metrics.jsonl", "{\"step\":1,\"loss\":0.5}\n");
    other.append("metrics.jsonl", "{\"step\":1,\"loss\":0.25,\"kl\":1}\n");
    let served = Served::new(&[one.run(), other.run()]);
    let found = served.get("/api/runs/0/difference/1").json();
    assert_eq!(found["configuration"], json!([{"key": "seed", "a": 1, "b": 2}]));
    assert!(found["metrics"].as_array().unwrap().contains(&json!({"name": "kl", "a": null, "b": 1})));
    let details = served.get("/api/runs/1").json();
    assert!(details["config_text"].as_str().unwrap().contains("seed = 2"), "{details}");
    // Runs of one name are named by their paths.
    assert_ne!(served.get("/api/runs").json()[0]["name"], served.get("/api/runs").json()[1]["name"]);
}

#[test]
fn an_export_has_the_page_and_all_data_and_overwrites_nothing() {
    let place = Place::new();
    place.append("metrics.jsonl", "{\"step\":1,\"loss\":0.5}\n");
    let mut lines: Vec<_> = (0..6).map(|number| line(1, 0, number, HOSTILE[number as usize])).collect();
    lines[0]["plugins"]["answer"]["payload"] = json!({"__proto__": 1});
    place.step(1, &lines);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("page");
    let view = View::open(&[place.run()]).unwrap();
    let bytes = export(&view, &folder).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let names = [
        "index.html",
        "app.js",
        "web/style.css",
        "data/runs.js",
        "data/0/metrics.js",
        "data/0/rows.js",
        "data/0/lines-0.js",
    ];
    for name in names {
        assert!(bytes >= read(name).len() as u64 && !read(name).is_empty(), "{name}");
    }
    let page = read("index.html");
    assert!(page.contains("content=\"files\"") && page.contains("default-src 'none'; script-src 'self'"), "{page}");
    assert!(page.contains("src=\"app.js\"") && !page.contains("type=\"module\""), "{page}");
    let lines = read("data/0/lines-0.js");
    assert!(!lines.contains('<') && !lines.contains('\u{2028}') && lines.contains("\\u003cscript>"), "{lines}");
    assert!(lines.contains("\\\"__proto__\\\":1"), "a name within a text, and none of the script's: {lines}");
    assert!(lines.starts_with("gavelData(\"0/lines-0\", [") && lines.trim_end().ends_with("]);"));
    let error = export(&view, &folder).unwrap_err().to_string();
    assert!(error.contains("exists and has files"), "{error}");
}
