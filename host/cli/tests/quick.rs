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
    assert!(code == Some(0) && said.contains("9 cases passed") && built, "{said}");

    // Another verdict, an error with its line, a module of the project, and a module of Python's library.
    place.edit("return Score(correct,", "return Score(not correct,");
    let (code, said, built) = place.test();
    assert!(code == Some(1) && said.contains("5 of 9 cases failed") && !built, "{said}");
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
    assert!(code == Some(0) && said.contains("9 cases passed") && !built, "{said}");
    place.edit("import math\n", "import math\n\n1 / 0\n");
    let (code, said, built) = place.test();
    assert!(code == Some(2) && said.contains("main.py, line 7, in <module>: 1 / 0") && !built, "{said}");
    assert!(said.contains("error: plugin `polite`: main.py cannot be imported\n"), "{said}");
    assert!(!said.contains("[test] params"), "{said}");
    place.edit("import math\n\n1 / 0\n", "import math\n");

    // A module that the stand-in lacks is built in.
    place.edit("import math\n", "import math\nimport calendar\n");
    place.edit("words.right(correct)", "words.right(correct and calendar.isleap(2000))");
    let (code, said, built) = place.test();
    assert!(code == Some(0) && said.contains("9 cases passed") && built, "{said}");
    assert!(said.contains("what it imports was nothing, now calendar"), "{said}");

    place.write("rows.jsonl", "{\"prompt\": \"2 + 2?\", \"response\": \"Answer: 4\", \"ground_truth\": \"4\"}\n");
    let score = ["score", "--plugin", "p=polite/build/quick.wasm", "--data", "rows.jsonl", "--out", "scores.jsonl"];
    let (code, _, stderr) = place.run(&score);
    assert!(code == Some(2) && stderr.contains("has no sources: `gavel plugin test --quick` made it"), "{stderr}");
    let granted = [&score[..], &["--grant", "p={ read = [\"polite:/sources\"] }"]].concat();
    let (code, _, stderr) = place.run(&granted);
    let refused =
        "plugin `p` is a quick build for tests: it reads its sources from a folder\nhint: run `gavel plugin build`";
    assert!(code == Some(2) && stderr.contains(refused), "{stderr}");

    // Another language, and a component.
    assert_eq!(place.run(&["plugin", "new", "other", "--lang", "rust"]).0, Some(0));
    let (code, _, stderr) = place.run(&["plugin", "test", "other", "--quick"]);
    assert!(code == Some(2) && stderr.contains("--quick is for plugins in Python\nhint: "), "{stderr}");
    let built = ["plugin", "test", "polite/build/quick.wasm", "--quick", "--cases", "polite/cases.jsonl"];
    let (code, _, stderr) = place.run(&built);
    assert!(code == Some(2) && stderr.contains("--quick is for a plugin's folder"), "{stderr}");
}

#[test]
fn a_tool_in_python_is_tested_without_a_build() {
    let place = Place(tempfile::tempdir().unwrap());
    assert_eq!(place.run(&["plugin", "new", "polite", "--lang", "python", "--kind", "tool"]).0, Some(0));
    // A module of the name that componentize-py has for the interface is the plugin's own.
    place.write("polite/tool.py", "RIGHT = \"right\"\n");
    place.edit("return \"right\"", "return RIGHT");
    place.edit(
        "from gavel import InvalidInput, tool\n",
        "from gavel import InvalidInput, tool\nfrom tool import RIGHT\n",
    );
    let (code, said, _) = place.test();
    assert!(code == Some(0) && said.contains("6 cases passed"), "{said}");
}
