//! Components are compiled in child processes of `gavel`, within limits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_data::{Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{
    Limits, LoadBudget, LoadError, LoadLimits, Plugin, PluginSpec, ProgramSpec, Sandbox, SandboxConfig,
};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

fn built(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path
}

/// A sandbox that compiles with `compiler`, within `loading`, and finds nothing
/// compiled before.
fn sandbox(cache: &Path, loading: LoadLimits, compiler: Option<&str>) -> Sandbox {
    Sandbox::new(SandboxConfig {
        cache: Some(cache.join("components")),
        loading,
        compiler: compiler.map(|program| PathBuf::from(program).into()),
        ..SandboxConfig::with_threads(NonZeroUsize::MIN)
    })
    .unwrap()
}

const GAVEL: &str = env!("CARGO_BIN_EXE_gavel");

/// Loading CPython, which takes the compiler 12 s of processor time and 500 MB.
fn load_python(loading: LoadLimits, compiler: &str) -> Result<String, LoadError> {
    let cache = tempfile::tempdir().unwrap();
    let spec = ProgramSpec { name: "python".into(), path: built("plugins/python"), limits: Limits::default() };
    sandbox(cache.path(), loading, Some(compiler)).add_program(spec)
}

#[test]
fn a_limit_that_the_compiler_exceeds_is_named() {
    let usual = LoadLimits::default();
    for (limits, expected, text) in [
        (
            LoadLimits { cpu: Duration::from_secs(1), ..usual },
            LoadBudget::Cpu,
            "took more than 1s of processor time\nhint: raise resources.loading.cpu, if you trust it",
        ),
        (
            LoadLimits { memory: 100 << 20, ..usual },
            LoadBudget::Memory,
            "took more than 100.0 MiB of memory\nhint: raise resources.loading.memory, if you trust it",
        ),
        (
            LoadLimits { timeout: Duration::from_millis(300), ..usual },
            LoadBudget::Timeout,
            "took more than 300ms\nhint: raise resources.loading.timeout, if you trust it",
        ),
    ] {
        let error = load_python(limits, GAVEL).unwrap_err();
        assert!(matches!(error, LoadError::Exceeded { which, .. } if which == expected), "{error}");
        assert!(error.to_string().ends_with(text), "{error}");
    }
}

#[test]
fn a_component_that_is_too_large_is_not_compiled() {
    let error = load_python(LoadLimits { size: 1 << 20, ..LoadLimits::default() }, GAVEL).unwrap_err();
    assert!(matches!(error, LoadError::TooCostly { .. }), "{error}");
    assert!(error.to_string().contains("1048576 allowed\nhint: raise resources.loading.size"), "{error}");
}

#[test]
fn a_compiler_that_does_not_start_is_no_fault_of_the_plugin() {
    let error = load_python(LoadLimits::default(), "/no/such/gavel").unwrap_err();
    assert!(matches!(error, LoadError::Engine(_)), "{error}");
    assert!(error.to_string().contains("cannot compile plugin `python`: /no/such/gavel: No such file"), "{error}");
}

#[test]
fn only_a_regular_file_within_the_limit_is_read() {
    let place = tempfile::tempdir().unwrap();
    let load = |path: &Path| {
        let spec = ProgramSpec { name: "program".into(), path: path.into(), limits: Limits::default() };
        sandbox(place.path(), LoadLimits::default(), Some(GAVEL)).add_program(spec).unwrap_err()
    };
    // It takes no space on the disk, but would take 1 TiB of memory.
    let large = place.path().join("large.wasm");
    std::fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let error = load(&large);
    assert!(matches!(error, LoadError::TooCostly { .. }), "{error}");
    assert!(error.to_string().contains("536870912 allowed\nhint: raise resources.loading.size"), "{error}");

    let pipe = place.path().join("pipe.wasm");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = load(&pipe).to_string();
    assert!(error.ends_with("pipe.wasm: it is not a regular file"), "{error}");
    assert!(matches!(load(place.path()), LoadError::Source { .. }));
}

#[tokio::test]
async fn a_compiler_that_is_killed_is_no_fault_of_the_plugin_and_not_remembered() {
    let place = tempfile::tempdir().unwrap();
    let killed = place.path().join("killed");
    let ended = |how: &str| format!("the compiler ended with signal: {how}: its own group");
    let ends = [
        ("kill -TERM $$", ended("15 (SIGTERM)")),
        ("kill -KILL $$", ended("9 (SIGKILL)")),
        ("exit 0", format!("{} ended without the code of the component", killed.display())),
    ];
    for (end, why) in ends {
        let script = format!(
            "#!/bin/sh\nread -r id name state parent group rest < /proc/$$/stat\n\
             [ \"$group\" = $$ ] && echo its own group >&2\n{end}\n"
        );
        // Another process writes it: a child of another test may inherit a file that is open here, and a file that
        // somebody writes cannot be run.
        let write = "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"";
        assert!(Command::new("sh").args(["-c", write]).arg(&killed).arg(script).status().unwrap().success());
        let spec = PluginSpec::new("answer", built("plugins/exact-answer"));
        let loaded = Plugin::load(&sandbox(place.path(), LoadLimits::default(), killed.to_str()), spec.clone()).await;
        let error = loaded.err().unwrap();
        assert!(matches!(error, LoadError::Engine(_)), "{error}");
        // Ctrl-C reaches the group of the run alone.
        let expected = format!("cannot compile plugin `answer`: {why}");
        assert!(error.to_string().contains(&expected), "{error}");
        let again = Plugin::load(&sandbox(place.path(), LoadLimits::default(), Some(GAVEL)), spec).await.unwrap();
        assert_eq!(again.no_snapshot(), None);
        std::fs::remove_dir_all(place.path().join("components")).unwrap();
    }
}

#[tokio::test]
async fn what_a_child_compiles_is_what_this_process_compiles() {
    let row = serde_json::json!({ "prompt": "3 1 2", "answer": "1 2 3" });
    let task = Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap();
    let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, "Answer: 1 2 3")]);
    let sample = Arc::new(Sample::new(Arc::new(task), 0, vec![trajectory]));
    let mut found = Vec::new();
    for compiler in [None, Some(GAVEL)] {
        let cache = tempfile::tempdir().unwrap();
        let sandbox = sandbox(cache.path(), LoadLimits::default(), compiler);
        let plugin = Plugin::load(&sandbox, PluginSpec::new("answer", built("plugins/exact-answer"))).await.unwrap();
        assert_eq!(plugin.no_snapshot(), None);
        found.push(plugin.score(&sample, 1).await);
    }
    assert!(matches!(found[0].outcome, Outcome::Scored(_)), "{:?}", found[0].outcome);
    assert_eq!((&found[0].outcome, &found[0].provenance), (&found[1].outcome, &found[1].provenance));
}

#[test]
fn a_compiler_without_a_folder_for_its_files_names_it() {
    let cache = tempfile::tempdir().unwrap();
    let nowhere = cache.path().join("nowhere");
    let mut gavel = Command::new(GAVEL);
    gavel.args(["plugin", "inspect"]).arg(built("plugins/format")).env("TMPDIR", &nowhere);
    let output = gavel.env("GAVEL_CACHE_DIR", cache.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    let what = format!("the compiler cannot write its files in {}: ", nowhere.display());
    assert!(said.contains(&what) && said.contains("\nhint: set the variable TMPDIR"), "{said}");
}

#[test]
fn a_compiler_whose_files_are_limited_names_the_limit() {
    // In KiB: below the component, and between the component and its code.
    for limit in [40, 200] {
        let cache = tempfile::tempdir().unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("ulimit -f {limit} && exec \"$@\""), "_", GAVEL, "plugin", "inspect"]);
        shell.arg(built("plugins/exact-answer")).env("GAVEL_CACHE_DIR", cache.path());
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{limit}: {said}");
        assert!(
            said.contains("the compiler cannot write its files in ") && said.contains("`ulimit -f`"),
            "{limit}: {said}"
        );
        assert!(said.contains("File too large"), "{limit}: {said}");
    }
}
