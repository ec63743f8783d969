//! Completions and man pages, as shells and `man` read them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::Project;
use std::process::Command;

fn completions(project: &Project, shell: &str) -> String {
    String::from_utf8(project.succeed(&["completions", shell]).stdout).unwrap()
}

#[test]
fn bash_completes_commands_and_options() {
    let project = Project::empty();
    project.write("gavel.bash", &completions(&project, "bash"));
    let complete = |words: &[&str]| {
        let script = format!(
            "source gavel.bash; COMP_WORDS=({}); COMP_CWORD={}; _gavel gavel '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let output = Command::new("bash").args(["-c", &script]).current_dir(project.path("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["gavel", "comp"]), ["completions"], "hidden commands are not offered");
    assert_eq!(complete(&["gavel", "plugin", "ins"]), ["inspect"]);
    assert_eq!(complete(&["gavel", "plugin", "new", "--from-t"]), ["--from-trl"]);
    assert_eq!(complete(&["gavel", "plugin", "new", "--kind", "j"]), ["judger"]);
}

#[test]
fn every_shell_has_completions() {
    let project = Project::empty();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = completions(&project, shell);
        assert!(script.contains("inspect") && script.contains("from-verl"), "{shell}: {script}");
        assert!(!script.contains("compile-component"), "{shell} offers a hidden command");
    }
}

#[test]
fn every_command_has_a_man_page() {
    let project = Project::empty();
    project.succeed(&["man", "share/man/man1"]);
    let page = |name: &str| project.read(&format!("share/man/man1/{name}.1"));
    assert!(page("gavel").contains("gavel\\-score(1)"));
    let new = page("gavel-plugin-new");
    for text in [".TH", "\\-\\-from\\-verl", "Examples:", "gavel plugin new polite"] {
        assert!(new.contains(text), "no {text:?} in {new}");
    }
    assert!(!project.path("share/man/man1/gavel-compile-component.1").exists());
}
