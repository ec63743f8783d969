//! `gavel doctor` where everything is missing, and where something is there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::{Project, stderr};

/// The lines that doctor prints about `what`, with its hints.
fn about<'a>(printed: &'a str, what: &str) -> Vec<&'a str> {
    let lines: Vec<&str> = printed.lines().collect();
    let is_about = |line: &&str| line.get(9..).is_some_and(|rest| rest.starts_with(what));
    let first = lines.iter().position(is_about).unwrap_or_else(|| panic!("nothing about {what}: {printed}"));
    let end = lines[first + 1..].iter().take_while(|line| is_about(line) || line.starts_with("   ")).count();
    lines[first..=first + end].to_vec()
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let project = Project::empty();
    let mut command = project.command(&["doctor"]);
    command.env("PATH", "").env("HOME", project.path("home"));
    for variable in ["GAVEL_CACHE_DIR", "XDG_CACHE_HOME", "VIRTUAL_ENV", "WASI_SDK_PATH"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(about(&printed, "sandbox")[0].starts_with("ok "), "{printed}");
    let cache = about(&printed, "cache of compiled plugins");
    assert!(cache[0].starts_with("ok ") && cache[0].ends_with("home/.cache/gavel/components"), "{printed}");
    for (what, tool) in [
        ("plugins in Rust", "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"),
        ("plugins in Python", "apt install python3 python3-venv"),
        ("plugins in JavaScript, TypeScript", "sudo apt install nodejs"),
        ("plugins in C, C++", "python3 -m pip install ziglang"),
    ] {
        let lines = about(&printed, what);
        assert!(lines[0].starts_with("missing "), "{printed}");
        assert!(lines[1].trim().starts_with("-> install it with `") && lines[1].contains(tool), "{printed}");
    }
    #[cfg(feature = "train")]
    {
        assert!(about(&printed, "libtorch")[0].starts_with("ok "), "{printed}");
        assert!(about(&printed, "memory")[0].contains(" free"), "{printed}");
    }
}

#[test]
fn the_plugins_of_a_release_are_compared_with_its_list() {
    // Of the same file system as the binary, so that it need not be copied.
    let release = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| release.path().join(name);
    for folder in ["bin", "plugins", "programs"] {
        std::fs::create_dir(path(folder)).unwrap();
    }
    std::fs::hard_link(env!("CARGO_BIN_EXE_gavel"), path("bin/gavel")).unwrap();
    #[cfg(feature = "train")]
    std::fs::hard_link(env!("CARGO_BIN_EXE_gavel-models"), path("bin/gavel-models")).unwrap();
    let doctor = || {
        let output = std::process::Command::new(path("bin/gavel")).arg("doctor").output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!doctor().contains("standard plugins"));
    for component in ["plugins/math.wasm", "programs/python.wasm"] {
        std::fs::write(path(component), "a").unwrap();
    }
    // BLAKE3 of `a`.
    let hash = "17762fddd969a453925d65717ac3eea21320b66b54342fde15128d6caf21215f";
    std::fs::write(path("B3SUMS"), format!("{hash}  plugins/math.wasm\n{hash}  programs/python.wasm\n")).unwrap();
    let printed = doctor();
    let found = about(&printed, "standard plugins");
    assert_eq!(found, ["ok       standard plugins           2 components, as released"]);
    std::fs::write(path("plugins/math.wasm"), "b").unwrap();
    std::fs::remove_file(path("programs/python.wasm")).unwrap();
    let printed = doctor();
    let found = about(&printed, "standard plugins");
    let says = "2 of 2 components are gone or differ from the release: plugins/math.wasm, programs/python.wasm";
    assert_eq!(found[0], format!("changed  standard plugins           {says}"));
    assert!(found[1].ends_with("-> unpack the archive again"), "{printed}");
}

#[test]
fn a_cache_that_cannot_be_used_says_why() {
    let project = Project::empty();
    project.write("taken", "");
    let output = project.command(&["doctor"]).env("GAVEL_CACHE_DIR", project.path("taken")).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines = about(&printed, "cache of compiled plugins");
    assert!(output.status.success() && lines[0].starts_with("missing "), "{printed}");
    assert!(lines[0].contains("taken/components cannot be used: "), "{printed}");
    assert!(lines[1].contains("set GAVEL_CACHE_DIR to a folder of yours; until then"), "{printed}");
}

/// `gavel` in a folder without `gavel-models`.
fn alone(project: &Project, args: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let gavel = folder.path().join("gavel");
    std::fs::hard_link(env!("CARGO_BIN_EXE_gavel"), &gavel).unwrap();
    let output = std::process::Command::new(gavel).args(args).current_dir(project.path("")).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output))
}

#[test]
fn without_its_other_program_gavel_names_the_commands_that_it_lacks() {
    let project = Project::empty();
    for command in ["train", "sft", "reward-model", "dpo", "eval", "generate", "serve", "merge", "bench", "config"] {
        let (shown, option) = match command {
            "serve" => ("`gavel serve` with a model".to_owned(), "-m"),
            _ => (format!("`gavel {command}`"), "-c"),
        };
        let expected = format!(
            "error: {shown} needs the program gavel-models, which is not beside this gavel\nhint: to train, evaluate or serve, build gavel with its default features, and keep both programs in one folder\n"
        );
        assert_eq!(alone(&project, &[command, option, "run.toml"]), (Some(2), String::new(), expected));
    }
    assert!(alone(&project, &["trian"]).2.contains("unrecognized subcommand 'trian'"));
    assert!(alone(&project, &["serve", "--rewrads", "m"]).2.contains("a similar argument exists: '--rewards'"));
    let (status, printed, _) = alone(&project, &["doctor"]);
    assert_eq!(status, Some(0));
    assert!(about(&printed, "libtorch")[0].starts_with("missing "), "{printed}");
    project.write("rows.jsonl", "{\"prompt\": \"?\", \"response\": \"1\"}\n");
    let score = ["score", "--reward-model", "quality=models/reward", "--data", "rows.jsonl", "--out", "out.jsonl"];
    let (status, _, said) = alone(&project, &score);
    assert_eq!(status, Some(2));
    assert!(said.starts_with("error: the reward model `quality` needs the program gavel-models, which is"), "{said}");
}

#[test]
fn the_version_names_the_commit_libtorch_and_the_contract() {
    let project = Project::empty();
    let contract = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/types.wit")).unwrap();
    let contract = contract.lines().next().unwrap().strip_prefix("package ").unwrap().trim_end_matches(';').to_owned();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (status, printed, _) = alone(&project, &["--version"]);
    let printed = lines(&printed);
    assert_eq!(status, Some(0));
    assert_eq!(printed.len(), 4, "{printed:?}");
    assert_eq!(printed[0], concat!("gavel ", env!("CARGO_PKG_VERSION")));
    let commit = printed[1].strip_prefix("commit ").unwrap();
    assert!(commit == "unknown" || commit.chars().all(|c| c.is_ascii_hexdigit()), "{commit}");
    assert_eq!(printed[2..], ["without libtorch".to_owned(), format!("contract {contract}")]);
    assert_eq!(alone(&project, &["-V"]).1, concat!("gavel ", env!("CARGO_PKG_VERSION"), "\n"));
    if cfg!(feature = "train") {
        let output = project.succeed(&["--version"]);
        let whole = lines(&String::from_utf8(output.stdout).unwrap());
        let version = whole[2].strip_prefix("libtorch ").unwrap();
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
        assert_eq!((&whole[..2], &whole[3..]), (&printed[..2], &printed[3..]));
    }
}

#[test]
#[cfg(all(feature = "train", target_os = "linux"))]
fn gavel_itself_does_not_load_libtorch() {
    let libraries = |program: &str| {
        // The loader of programs prints what it would load.
        let output = std::process::Command::new(program).env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (light, whole) = (libraries(env!("CARGO_BIN_EXE_gavel")), libraries(env!("CARGO_BIN_EXE_gavel-models")));
    assert!(light.contains("libc.so") && !light.contains("torch"), "{light}");
    assert!(whole.contains("libtorch_cpu.so"), "{whole}");
}
