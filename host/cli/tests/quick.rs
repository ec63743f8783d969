//! `gavel plugin test --quick` on a plugin in Python, with the real toolchain.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::{Command, Output};

struct Place(tempfile::TempDir);

impl Place {
    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.path(path), text).unwrap();
    }

    fn edit(&self, from: &str, to: &str) {
        let main = std::fs::read_to_string(self.path("polite/main.py")).unwrap();
        assert!(main.contains(from), "{main}");
        self.write("polite/main.py", &main.replace(from, to));
    }

    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gavel"));
        let Output { status, stdout, stderr } =
            command.current_dir(self.0.path()).args(args).env("NO_COLOR", "1").output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    /// The exit status, what was printed, and whether something was built.
    fn test(&self) -> (Option<i32>, String, bool) {
        let (code, stdout, stderr) = self.run(&["plugin", "test", "polite", "--quick"]);
        (code, stdout + &stderr, stderr.contains("building polite (Python)"))
    }
}

#[test]
fn an_edit_is_tested_without_a_build_and_never_scores_in_a_run() {
    let place = Place(tempfile::tempdir().unwrap());
    assert_eq!(place.run(&["plugin", "new", "polite", "--lang", "python"]).0, Some(0));
    let (code, said, built) = place.test();
    assert!(code == Some(0) && said.contains("8 cases passed") && built, "{said}");

    // Another verdict, an error with its line, a module of one's own, one of Python's library that rewards often import.
    place.edit("return Score(correct,", "return Score(not correct,");
    let (code, said, built) = place.test();
    assert!(code == Some(1) && said.contains("5 of 8 cases failed") && !built, "{said}");
    place.edit("return Score(not correct,", "return Score(1 / 0,");
    let (code, said, built) = place.test();
    let line = "ZeroDivisionError: division by zero (main.py, line 35, in score: return Score(1 / 0,";
    assert!(code == Some(1) && said.contains(line) && !built, "{said}");
    place.write(
        "polite/words.py",
        "def right(correct):\n    import textwrap\n\n    return float(textwrap.dedent(str(int(correct))))\n",
    );
    place.edit("return Score(1 / 0,", "return Score(words.right(correct),");
    place.edit("import math\n", "import math\nimport words\n");
    let (code, said, built) = place.test();
    assert!(code == Some(0) && said.contains("8 cases passed") && !built, "{said}");
    place.edit("import math\n", "import math\n\n1 / 0\n");
    let (code, said, built) = place.test();
    assert!(code == Some(2) && said.contains("main.py, line 7, in <module>: 1 / 0") && !built, "{said}");
    place.edit("import math\n\n1 / 0\n", "import math\n");

    // One that was not there is built in.
    place.edit("import math\n", "import math\nimport calendar\n");
    place.edit("words.right(correct)", "words.right(correct and calendar.isleap(2000))");
    let (code, said, built) = place.test();
    assert!(code == Some(0) && said.contains("8 cases passed") && built, "{said}");
    assert!(said.contains("what it imports was nothing, now calendar"), "{said}");

    place.write("rows.jsonl", "{\"prompt\": \"2 + 2?\", \"response\": \"Answer: 4\", \"ground_truth\": \"4\"}\n");
    let score = ["score", "--plugin", "p=polite/build/quick.wasm", "--data", "rows.jsonl", "--out", "scores.jsonl"];
    let (code, _, stderr) = place.run(&score);
    assert!(code == Some(2) && stderr.contains("has no sources: `gavel plugin test --quick` made it"), "{stderr}");
    let granted = [&score[..], &["--grant", "p={ read = [\"polite:/sources\"] }"]].concat();
    let (code, _, stderr) = place.run(&granted);
    let refused = "plugin `p` reads its sources from a folder, for tests alone\nhint: run `gavel plugin build`";
    assert!(code == Some(2) && stderr.contains(refused), "{stderr}");

    // Another language, and a component.
    assert_eq!(place.run(&["plugin", "new", "other", "--lang", "rust"]).0, Some(0));
    let (code, _, stderr) = place.run(&["plugin", "test", "other", "--quick"]);
    assert!(code == Some(2) && stderr.contains("--quick is for plugins in Python\nhint: "), "{stderr}");
    let built = ["plugin", "test", "polite/build/quick.wasm", "--quick", "--cases", "polite/cases.jsonl"];
    let (code, _, stderr) = place.run(&built);
    assert!(code == Some(2) && stderr.contains("--quick is for a plugin's folder"), "{stderr}");
}
