//! Programs that print what they print with gcc on x86-64, with `-O0 -fwrapv`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn output(job: &str) -> Result<std::process::Output, Box<dyn Error>> {
    Ok(Command::new(env!("CARGO_BIN_EXE_c")).arg(job).output()?)
}

#[test]
fn programs_print_what_they_print_with_gcc() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut programs: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    programs.retain(|path| path.extension().is_some_and(|kind| kind == "c"));
    assert_eq!(programs.len(), 6);
    for program in programs {
        let job = serde_json::json!({ "code": fs::read_to_string(&program)? }).to_string();
        let ran = output(&job)?;
        let words = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{}: {words}", program.display());
        let printed = String::from_utf8_lossy(&ran.stdout);
        assert_eq!(printed, fs::read_to_string(program.with_extension("out"))?, "{}", program.display());
    }
    Ok(())
}

#[test]
fn answers_are_by_type() -> Result<(), Box<dyn Error>> {
    let code = "enum e { A, B = 7 }; typedef unsigned char byte; struct s { int a; } s; int *none;\n\
                long double half(void) { return 0.5L; } byte *raw(void) { return (byte *)\"raw\"; }\n\
                const volatile char *text(void) { return \"a\\\"b\"; } char *broken(void) { return \"\\xff\"; }";
    let values = [
        ("half()", "0.5"),
        ("raw()", "\"raw\""),
        ("text()", "\"a\\\"b\""),
        ("(signed char *)\"signed\"", "\"signed\""),
        ("broken()", "\"\\u0000ÿ\""),
        ("(char *)0", "null"),
        ("none", "null"),
        ("&s", "true"),
        ("(void *)&none", "true"),
        ("half", "true"),
        ("B", "7"),
        ("(enum e)1", "1"),
        ("'a'", "97"),
        ("(byte)200", "200"),
        ("(short)-3", "-3"),
        ("1 == 1", "1"),
        ("(_Bool)2", "true"),
        ("sizeof(int)", "4"),
        ("-1UL", "18446744073709551615"),
        ("0.1f", "0.10000000149011612"),
        ("1 / 0.0", "null"),
    ];
    let test: String = values.iter().map(|(value, _)| format!("__answer({value});")).collect();
    let ran = output(&serde_json::json!({ "code": code, "test": test }).to_string())?;
    let answers = String::from_utf8(ran.stdout)?;
    let wanted: String = values.iter().map(|(_, answer)| format!("{answer}\n")).collect();
    assert_eq!(answers, wanted, "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(())
}

#[test]
fn what_is_not_supported_is_an_error_of_the_compiler() -> Result<(), Box<dyn Error>> {
    for (code, what) in [
        ("#include <setjmp.h>\nint main(void) { return 0; }", "setjmp.h"),
        ("int f(a) int a; { return a; }\nint main(void) { return f(0); }", "type expected"),
        ("int main(void) { return undeclared + 1; }", "undeclared"),
    ] {
        let ran = output(&serde_json::json!({ "code": code }).to_string())?;
        let words = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && words.contains("cannot be compiled") && words.contains(what), "{words}");
    }
    Ok(())
}
