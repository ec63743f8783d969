//! Exceptions of a plugin in TypeScript are shown with the author's files and lines.

use crate::project::{Project, stderr};

const MAIN: &str = r#"import { reward } from "gavel";
import { parsed } from "./lib/parsed.js";

interface Unused {
  text: string;
}

export const score = reward(({ sample }) => {
  if (sample.response === "forgotten") return undefined as unknown as number;
  const first = (text: string) => parsed(text);
  return [sample.response].map(first)[0]!;
});
"#;

const PARSED: &str = "// A comment, which no bundle keeps.\n\nexport function parsed(text: string): number {\n  return JSON.parse(text).score.value;\n}\n";

const CASES: &str = r#"{"case": "thrown", "prompt": "?", "response": "{}", "expect": {"score": 1}}
{"case": "forgotten", "prompt": "?", "response": "forgotten", "expect": {"score": 1}}
"#;

/// Breaks the plugin in `folder`, in a call and where its module is run.
pub fn name_the_authors_lines(project: &Project, folder: &str) {
    let manifest = project.read(&format!("{folder}/plugin.toml"));
    let lines: Vec<&str> = manifest.lines().filter(|line| !line.starts_with("params")).collect();
    project.write(&format!("{folder}/plugin.toml"), &lines.join("\n"));
    std::fs::create_dir(project.path(&format!("{folder}/lib"))).unwrap();
    // It tests functions that no longer exist.
    std::fs::remove_file(project.path(&format!("{folder}/main.test.ts"))).unwrap();
    project.write(&format!("{folder}/main.ts"), MAIN);
    project.write(&format!("{folder}/lib/parsed.ts"), PARSED);
    project.write(&format!("{folder}/cases.jsonl"), CASES);
    let output = project.run(&["plugin", "test", folder]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", stderr(&output));
    assert!(said.contains(" at parsed (lib/parsed.ts:4) at first (main.ts:10)\n"), "{said}");
    assert!(said.contains("the function returned undefined: end it with `return`"), "{said}");
    assert!(!said.contains("bundle") && !said.contains("vendor/gavel"), "{said}");

    project.write(&format!("{folder}/lib/parsed.ts"), &format!("{PARSED}\nparsed(\"none\");\n"));
    let output = project.run(&["plugin", "build", folder]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("parsed@lib/parsed.ts:4\n") && said.contains("@lib/parsed.ts:7\n"), "{said}");
}
