use super::fake::{Asked, Fake, Mode};
use super::*;
use crate::{TrackerKind, send};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What an MLflow server keeps in its database.
#[derive(Default)]
struct Kept {
    experiments: Vec<String>,
    /// The runs: tags, parameters, and each number once, by name, time and step.
    runs: Vec<Value>,
    params: BTreeMap<String, String>,
    metrics: BTreeMap<(String, i64, i64), f64>,
    status: Vec<Value>,
    artifacts: BTreeMap<String, Value>,
}

type Shared = Arc<Mutex<Kept>>;

fn start() -> (Fake, Shared) {
    let kept = Shared::default();
    let shared = kept.clone();
    (Fake::start(move |asked| answer(&mut shared.lock().unwrap(), asked)), kept)
}

fn answer(kept: &mut Kept, Asked { path, body, .. }: &Asked) -> (u16, Value) {
    if let Some(name) = path.strip_prefix("/api/2.0/mlflow/experiments/get-by-name?experiment_name=") {
        return match kept.experiments.iter().position(|found| found == name) {
            Some(number) => (200, json!({"experiment": {"experiment_id": number.to_string()}})),
            None => (404, json!({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "No Experiment"})),
        };
    }
    if path.starts_with("/api/2.0/mlflow/runs/get?run_id=run0") {
        return (200, json!({"run": {"info": {"artifact_uri": "mlflow-artifacts:/0/run0/artifacts"}}}));
    }
    if let Some(artifact) = path.strip_prefix("/api/2.0/mlflow-artifacts/artifacts/") {
        kept.artifacts.insert(artifact.to_owned(), body.clone());
        return (200, json!({}));
    }
    match path.strip_prefix("/api/2.0/mlflow/").unwrap() {
        "experiments/create" => {
            kept.experiments.push(body["name"].as_str().unwrap().to_owned());
            (200, json!({"experiment_id": (kept.experiments.len() - 1).to_string()}))
        }
        "runs/search" => {
            let filter = body["filter"].as_str().unwrap();
            let id = filter.strip_prefix("tags.`gavel.id` = '").unwrap().strip_suffix('\'').unwrap();
            let has_id =
                |run: &Value| run["tags"].as_array().unwrap().contains(&json!({"key": "gavel.id", "value": id}));
            let found = kept.runs.iter().position(has_id);
            (200, found.map_or(json!({}), |number| json!({"runs": [{"info": {"run_id": format!("run{number}")}}]})))
        }
        "runs/create" => {
            kept.runs.push(body.clone());
            (200, json!({"run": {"info": {"run_id": format!("run{}", kept.runs.len() - 1)}}}))
        }
        "runs/log-batch" => {
            assert_eq!(body["run_id"], "run0");
            let (metrics, params) = (body["metrics"].as_array().unwrap(), body["params"].as_array().unwrap());
            assert!(metrics.len() <= 1000 && params.len() <= 100, "{} {}", metrics.len(), params.len());
            for param in params {
                let (key, value) = (param["key"].as_str().unwrap(), param["value"].as_str().unwrap());
                assert!(value.chars().count() <= 500);
                let before = kept.params.insert(key.to_owned(), value.to_owned());
                if before.is_some_and(|before| before != value) {
                    return (400, json!({"error_code": "INVALID_PARAMETER_VALUE", "message": "Changing param values"}));
                }
            }
            for metric in metrics {
                let number = |name: &str| metric[name].as_i64().unwrap();
                let key = (metric["key"].as_str().unwrap().to_owned(), number("timestamp"), number("step"));
                let value = metric["value"].as_f64().unwrap();
                assert!(kept.metrics.insert(key, value).is_none_or(|before| before == value), "{metric}");
            }
            (200, json!({}))
        }
        "runs/update" | "runs/set-tag" => {
            kept.status.push(body.clone());
            (200, json!({}))
        }
        other => panic!("{other}"),
    }
}

fn values(kept: &Shared, name: &str) -> Vec<(i64, f64)> {
    let kept = kept.lock().unwrap();
    kept.metrics.iter().filter(|((key, ..), _)| key == name).map(|((.., step), value)| (*step, *value)).collect()
}

#[test]
fn a_run_has_its_parameters_numbers_and_end() {
    let (fake, kept) = start();
    let many: String = (0..250).map(|number| format!("k{number} = \"{}\"\n", "v".repeat(3 * number))).collect();
    let run = Run::new(&format!("seed = 7\nsecret_key = \"s3cret\"\n[other]\n{many}"));
    let wide: String = (0..30).map(|number| format!(",\"m/{number}\":{number}")).collect();
    (1..=100).for_each(|step| run.log(step, &wide));
    let table = server(TrackerKind::Mlflow, &fake);
    send_all(&mut run.link(&table)).unwrap();
    {
        let kept = kept.lock().unwrap();
        assert_eq!((kept.experiments.as_slice(), kept.runs.len()), (["gavel".to_owned()].as_slice(), 1));
        assert_eq!(
            (&kept.runs[0]["run_name"], &kept.runs[0]["start_time"]),
            (&json!("demo"), &json!(1_700_000_001_000_i64))
        );
        assert_eq!(
            (kept.params.len(), kept.params["seed"].as_str(), kept.params["secret_key"].as_str()),
            (252, "7", "…")
        );
        assert_eq!(kept.metrics.len(), 31 * 100);
        let config = kept.artifacts["0/run0/artifacts/config.toml"].as_str().unwrap();
        assert!(config.contains("seed = 7") && !config.contains("s3cret"), "{config}");
    }
    assert_eq!(values(&kept, "reward/mean")[99], (100, 100.5));
    // Another process sends nothing twice, and the end.
    fake.take();
    run.end("failed");
    send_all(&mut run.link(&table)).unwrap();
    let asked: Vec<_> = fake.take().into_iter().map(|asked| asked.body).collect();
    assert_eq!(
        asked,
        [
            json!({"run_id": "run0", "key": "gavel.error", "value": "out of memory\nhint: buy some"}),
            json!({"run_id": "run0", "status": "FAILED", "end_time": 1_700_000_100_000_i64}),
        ]
    );
    send_all(&mut run.link(&table)).unwrap();
    assert_eq!(fake.take(), []);
    // It is resumed after step 98 and repeats two steps at other times.
    fs::remove_file(layout::ending(&run.path)).unwrap();
    let text = fs::read_to_string(layout::metrics(&run.path)).unwrap();
    let whole: String = text.split_inclusive('\n').take(98).collect();
    let repeated =
        (99..=101).map(|step| format!("{{\"step\":{step},\"reward/mean\":0,\"time/timestamp\":1800000000}}\n"));
    fs::write(layout::metrics(&run.path), whole + &repeated.collect::<String>()).unwrap();
    send_all(&mut run.link(&table)).unwrap();
    assert_eq!(fake.take()[0].body, json!({"run_id": "run0", "status": "RUNNING"}));
    let rewards = values(&kept, "reward/mean");
    assert_eq!((rewards.len(), rewards[98], rewards[100]), (101, (99, 99.5), (101, 0.0)));
}

#[test]
fn what_was_sent_before_a_kill_is_not_there_twice() {
    let (fake, kept) = start();
    let run = Run::new("seed = 7\n");
    run.log(1, "");
    let table = server(TrackerKind::Mlflow, &fake);
    // Killed after each request, before that is noted: the state goes back to what it was before.
    let mut link = run.link(&table);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(link.advance()).unwrap();
    let begun = run.kept("mlflow").unwrap();
    let mut state: Value = serde_json::from_str(&begun).unwrap();
    for key in ["remote", "has_config", "last"] {
        state.as_object_mut().unwrap().remove(key);
    }
    fs::write(layout::tracker(&run.path, "mlflow"), state.to_string()).unwrap();
    run.log(2, "");
    send_all(&mut run.link(&table)).unwrap();
    assert_eq!(kept.lock().unwrap().runs.len(), 1, "the run is found again");
    assert_eq!(values(&kept, "reward/mean"), [(1, 1.5), (2, 2.5)]);
}

#[test]
fn a_server_that_fails_hangs_or_answers_nonsense_gets_the_run_later() {
    for mode in [Mode::Fails, Mode::Garbage, Mode::Hangs] {
        let (fake, kept) = start();
        let run = Run::new("seed = 7\n");
        let table = server(TrackerKind::Mlflow, &fake);
        fake.set(mode);
        let tracking = run.tracking(&table, TIMES);
        (1..=300).for_each(|step| run.log(step, ""));
        wait_until("a request", || !fake.take().is_empty());
        fake.set(Mode::Well);
        wait_until("the last step", || values(&kept, "reward/mean").len() == 300);
        run.end("ended");
        drop(tracking);
        let kept = kept.lock().unwrap();
        assert_eq!(kept.status.last().unwrap()["status"], "FINISHED", "{mode:?}");
        assert_eq!(kept.runs.len(), 1, "{mode:?}");
    }
}

#[test]
fn a_run_ends_in_time_and_what_is_left_can_be_sent() {
    let (fake, kept) = start();
    let run = Run::new("seed = 7\n");
    run.log(1, "");
    let table = server(TrackerKind::Mlflow, &fake);
    let times = Times { request: Duration::from_secs(600), end: Duration::from_millis(200), ..TIMES };
    let tracking = run.tracking(&table, times);
    wait_until("the first step", || values(&kept, "reward/mean").len() == 1);
    fake.set(Mode::Hangs);
    run.log(2, "");
    fake.take();
    wait_until("a request", || !fake.take().is_empty());
    run.log(3, "");
    run.end("ended");
    let start = Instant::now();
    drop(tracking);
    // Far less than the request may take.
    assert!(start.elapsed() < Duration::from_secs(300), "{:?}", start.elapsed());
    let left = crate::tracking::left(&run.path, "mlflow", &format!("mlflow {} gavel", fake.url), true);
    assert_eq!(left.as_deref(), Some("2 steps are not sent yet"));
    fake.set(Mode::Well);
    let sent = send(&run.path, std::slice::from_ref(&table)).unwrap();
    assert_eq!((sent[0].before, sent[0].now, sent[0].error.is_none()), (Some(1), Some(3), true));
    assert_eq!(values(&kept, "reward/mean"), [(1, 1.5), (2, 2.5), (3, 3.5)]);
    assert_eq!(kept.lock().unwrap().status.last().unwrap()["status"], "FINISHED");
    assert_eq!(crate::tracking::left(&run.path, "mlflow", &format!("mlflow {} gavel", fake.url), true), None);
}

#[test]
fn a_run_that_was_killed_is_ended_when_it_is_sent() {
    let (fake, kept) = start();
    let run = Run::new("[train]\nsteps = 9\n");
    run.log(1, "");
    let table = server(TrackerKind::Mlflow, &fake);
    send(&run.path, std::slice::from_ref(&table)).unwrap();
    assert_eq!(kept.lock().unwrap().status.last().unwrap()["status"], "KILLED");
}

#[test]
fn an_error_names_the_server_and_no_key() {
    let (fake, _kept) = start();
    let run = Run::new("seed = 7\n");
    // A variable that every process has.
    let key = std::env::var("PATH").unwrap();
    let table = TrackerTable { api_key_env: Some("PATH".into()), ..server(TrackerKind::Mlflow, &fake) };
    fake.set(Mode::Tells);
    let error = send_all(&mut run.link(&table)).unwrap_err().to_string();
    assert_eq!(fake.take()[0].key, Some(format!("Bearer {}", key.trim())));
    assert!(error.contains("answered 401: no access for Some(\"Bearer $PATH\")\nhint: name the variable"), "{error}");
    assert!(!error.contains(&key) && !all_text(&run.path).contains(&key));
    fake.set(Mode::Garbage);
    let error = send_all(&mut run.link(&table)).unwrap_err().to_string();
    assert!(error.ends_with("get-by-name gave an answer that cannot be used: <html>no</html>"), "{error}");
    let error =
        Link::new(&run.path, &TrackerTable { api_key_env: Some("GAVEL_NONE".into()), ..table }, true, TIMES.request);
    let error = error.err().unwrap().to_string();
    assert_eq!(
        error,
        "the tracker `mlflow`: api_key_env: the variable GAVEL_NONE is not set\nhint: set it in the environment of gavel, or remove api_key_env"
    );
}
