use super::*;
use crate::layout;
use crate::metrics::Metrics;
use crate::metrics_log::MetricsLog;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow_array::{Array, Float64Array, RecordBatch, StringArray, UInt64Array};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

struct Run(tempfile::TempDir);

impl Run {
    fn new() -> Self {
        let run = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(run.path("run/checkpoints")).unwrap();
        fs::create_dir_all(run.path("run/trajectories")).unwrap();
        fs::write(layout::config(&run.path("run")), "").unwrap();
        let mut log = MetricsLog::open(&run.path("run")).unwrap();
        for (step, name, value) in [(1, "loss", 0.1), (2, "a, \"b\"\n", -3e-9)] {
            let mut metrics = Metrics::of_step(step);
            metrics.set(name, value);
            log.write(&metrics).unwrap();
        }
        run
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn export(&self, exported: Exported, out: &str) -> ExportedTable {
        export(&self.path("run"), exported, &self.path(out)).unwrap()
    }

    fn parquet(&self, name: &str) -> Vec<RecordBatch> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(self.path(name)).unwrap()).unwrap();
        reader.build().unwrap().map(|batch| batch.unwrap()).collect()
    }
}

fn column<'a, T: Array + 'static>(batch: &'a RecordBatch, name: &str) -> &'a T {
    batch.column_by_name(name).unwrap().as_any().downcast_ref().unwrap()
}

#[test]
fn metrics_have_a_row_a_step_and_a_column_a_name() {
    let run = Run::new();
    let found = run.export(Exported::Metrics, "m.csv");
    assert_eq!((found.rows, found.columns, found.damaged), (2, 3, vec![]));
    assert_eq!(
        fs::read_to_string(run.path("m.csv")).unwrap(),
        "step,loss,\"a, \"\"b\"\"\n\"\n1,0.1,\n2,,-0.000000003\n"
    );
    run.export(Exported::Metrics, "m.parquet");
    let batch = &run.parquet("m.parquet")[0];
    assert_eq!(column::<UInt64Array>(batch, "step").values(), &[1, 2]);
    let loss: Vec<_> = column::<Float64Array>(batch, "loss").iter().collect();
    assert_eq!(loss, [Some(0.1), None]);
}

#[test]
fn trajectories_have_the_verdict_of_each_plugin() {
    let run = Run::new();
    let folder = run.path("run");
    crate::write_plugin_sets(&folder, &[json!({"plugins": [{"name": "a/b"}, {"name": "late"}]})]).unwrap();
    let line = json!({
        "id": "3.0.1", "step": 3, "trained_step": 4, "group": 0, "sample": 1, "trajectory": 0, "reward": 0.5,
        "outcome": "scored", "response": "x,\ry", "messages": [{"role": "assistant", "content": "x"}],
        "plugins": {"a/b": {"outcome": "scored", "score": 0.5, "metrics": {}}}, "unknown": [1],
    });
    let old = json!({"id": "3.0.2", "response": "", "plugins": {}});
    fs::write(layout::samples(&folder, 4, 0), format!("{line}\ndamaged\n{old}")).unwrap();
    fs::write(layout::samples(&folder, 5, 1), format!("{old}\n")).unwrap();
    let all = Exported::Trajectories { step: None };
    let found = run.export(all, "t.parquet");
    assert_eq!((found.rows, found.damaged.len(), found.damaged[0].line), (3, 1, 2));
    let batch = &run.parquet("t.parquet")[0];
    assert_eq!(column::<UInt64Array>(batch, "recorded_step").values(), &[4, 4, 5]);
    let texts =
        |name: &str| column::<StringArray>(batch, name).iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>();
    assert_eq!(texts("response"), [Some("x,\ry".into()), Some(String::new()), Some(String::new())]);
    assert_eq!(texts("plugin/a/b/outcome"), [Some("scored".into()), None, None]);
    assert_eq!(texts("messages")[0].as_deref(), Some(r#"[{"role":"assistant","content":"x"}]"#));
    assert_eq!(column::<Float64Array>(batch, "plugin/late/score").null_count(), 3);
    let one = run.export(Exported::Trajectories { step: Some(5) }, "t.csv");
    assert_eq!(one.rows, 1);
    let text = fs::read_to_string(run.path("t.csv")).unwrap();
    assert!(
        text.starts_with("recorded_step,id,step,") && text.lines().nth(1).unwrap().starts_with("5,3.0.2,,"),
        "{text}"
    );
    assert!(text.lines().nth(1).unwrap().contains(",\"\","), "an empty text is not absent: {text}");
}

#[test]
fn more_rows_than_fit_into_memory_are_handed_on() {
    let run = Run::new();
    let folder = run.path("run");
    let lines: String = (0..9000).map(|number| format!("{}\n", json!({"id": format!("1.{number}.0")}))).collect();
    fs::write(layout::samples(&folder, 1, 0), lines).unwrap();
    run.export(Exported::Trajectories { step: None }, "t.parquet");
    let batches = run.parquet("t.parquet");
    let ids =
        batches.iter().flat_map(|batch| column::<StringArray>(batch, "id").iter().map(|id| id.unwrap().to_owned()));
    assert!(ids.eq((0..9000).map(|number| format!("1.{number}.0"))));
}

#[test]
fn what_cannot_be_written_is_refused() {
    let run = Run::new();
    for (out, says) in [
        ("m.json", "it must end in .csv or .parquet"),
        ("m", "it must end in .csv or .parquet"),
        ("none/m.csv", "cannot write"),
    ] {
        let error = export(&run.path("run"), Exported::Metrics, &run.path(out)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let error = export(&run.path(""), Exported::Metrics, &run.path("m.csv")).unwrap_err().to_string();
    assert!(error.contains("is no run"), "{error}");
    assert!(!run.path("m.csv").exists());
}
