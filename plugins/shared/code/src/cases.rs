//! The test cases of a ground truth, in the form of APPS, LiveCodeBench and
//! verl: `{"inputs": […], "outputs": […], "fn_name": …}`.

use crate::compare::{begins_output, same_output, same_value};
use crate::repeat::Ways;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    inputs: Vec<&'a RawValue>,
    #[serde(borrow)]
    outputs: Vec<&'a RawValue>,
    #[serde(default)]
    fn_name: Option<String>,
}

/// Cases of one kind.
pub(crate) struct Cases {
    function: Option<String>,
    cases: Vec<Case>,
}

struct Case {
    input: Input,
    expected: Expected,
}

enum Input {
    Stdin(String),
    Arguments(Vec<Box<RawValue>>),
}

/// The expected answer of a case.
pub(crate) enum Expected {
    /// A program prints this.
    Printed(String),
    /// A function returns this, or the only element of this, as JSON.
    Returned(Box<RawValue>),
}

/// How much longer a right output may be than the expected one: it may have
/// other white space, or write `é` as `\u00e9` and `1` as `1.0`.
const SPELLING: usize = 4;

/// The job of a child.
#[derive(Serialize)]
struct Job<'a> {
    code: &'a str,
    #[serde(flatten)]
    call: Option<Call<'a>>,
    #[serde(skip_serializing_if = "Ways::is_empty")]
    repeat: &'a Ways,
}

#[derive(Serialize)]
struct Call<'a> {
    function: &'a str,
    arguments: &'a [Box<RawValue>],
}

impl Cases {
    /// Reads a ground truth.
    ///
    /// # Errors
    /// The mistake in it. Having no case is a mistake too, as any code would
    /// pass.
    pub(crate) fn read(truth: &str) -> Result<Self, String> {
        let form = r#"{"inputs": […], "outputs": […]}, with "fn_name" where a function is tested"#;
        let written: Written =
            serde_json::from_str(truth).map_err(|error| format!("the ground truth is not {form}: {error}"))?;
        let Written { inputs, outputs, fn_name } = written;
        if inputs.len() != outputs.len() {
            let (inputs, outputs) = (inputs.len(), outputs.len());
            return Err(format!("the ground truth has {inputs} inputs and {outputs} outputs"));
        }
        if inputs.is_empty() {
            return Err("the ground truth has no test case: any code would pass".into());
        }
        let function = fn_name.filter(|name| !name.is_empty());
        let read = |(number, (input, output)): (usize, (&RawValue, &RawValue))| {
            let case = match function {
                None => Case::program(input, output),
                Some(_) => Case::function(input, output),
            };
            case.map_err(|what| format!("case {} of the ground truth: {what}", number + 1))
        };
        let cases = inputs.into_iter().zip(outputs).enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { function, cases })
    }

    /// The first `most`.
    ///
    /// # Errors
    /// All of their outputs are blank: code that does nothing would pass.
    pub(crate) fn first(mut self, most: usize) -> Result<Self, String> {
        self.cases.truncate(most);
        if self.cases.iter().all(|case| case.expected.is_blank()) {
            return Err("every output of the ground truth is blank: code that does nothing would pass".into());
        }
        Ok(self)
    }

    pub(crate) fn len(&self) -> usize {
        self.cases.len()
    }

    /// The job of the case's child, as the program's argument, and its input.
    pub(crate) fn job(&self, number: usize, code: &str, repeat: &Ways) -> (String, &str) {
        let function = self.function.as_deref().unwrap_or_default();
        let (call, stdin) = match &self.cases[number].input {
            Input::Stdin(stdin) => (None, stdin.as_str()),
            Input::Arguments(arguments) => (Some(Call { function, arguments }), ""),
        };
        // Any text and any JSON can be written as JSON.
        (serde_json::to_string(&Job { code, call, repeat }).unwrap_or_default(), stdin)
    }

    /// What the case should answer.
    pub(crate) fn expected(&self, number: usize) -> &Expected {
        &self.cases[number].expected
    }
}

impl Case {
    fn program(input: &RawValue, output: &RawValue) -> Result<Self, String> {
        let (stdin, printed) = (lines(input)?, lines(output)?);
        Ok(Self { input: Input::Stdin(stdin), expected: Expected::Printed(printed) })
    }

    /// APPS writes arguments as a list. LiveCodeBench writes them as a text
    /// with JSON in each line, and its result is a text of JSON, too.
    fn function(input: &RawValue, output: &RawValue) -> Result<Self, String> {
        if let Ok(arguments) = serde_json::from_str(input.get()) {
            return Ok(Self { input: Input::Arguments(arguments), expected: Expected::Returned(output.to_owned()) });
        }
        let text: String = serde_json::from_str(input.get())
            .map_err(|_| "its input is neither a list of arguments nor a text with one in each line".to_owned())?;
        let arguments = text.lines().filter(|line| !line.trim().is_empty()).map(json).collect::<Result<_, _>>()?;
        let returned = match serde_json::from_str::<String>(output.get()) {
            Ok(text) => json(&text)?,
            Err(_) => output.to_owned(),
        };
        Ok(Self { input: Input::Arguments(arguments), expected: Expected::Returned(returned) })
    }
}

/// A text, or a list of its lines.
fn lines(value: &RawValue) -> Result<String, String> {
    let text = serde_json::from_str::<String>(value.get());
    text.or_else(|_| serde_json::from_str::<Vec<String>>(value.get()).map(|lines| lines.join("\n")))
        .map_err(|_| "a program reads and prints a text, or a list of lines".into())
}

fn json(text: &str) -> Result<Box<RawValue>, String> {
    serde_json::from_str(text).map_err(|error| format!("{text:?} is not JSON: {error}"))
}

impl Expected {
    /// Whether code that does nothing would give this answer.
    pub(crate) fn is_blank(&self) -> bool {
        self.is(match self {
            Self::Printed(_) => "",
            Self::Returned(_) => "null",
        })
    }

    /// Whether a child that printed `stdout`, and was ended at the `limit` of
    /// bytes that it may print, may have been right.
    pub(crate) fn may_exceed(&self, limit: usize, stdout: &str) -> bool {
        let (expected, begun) = match self {
            Self::Printed(expected) => (expected.len(), begins_output(expected, stdout)),
            // The output of a function is on stderr.
            Self::Returned(expected) => (expected.get().len(), !stdout.is_empty()),
        };
        begun && SPELLING.saturating_mul(expected) > limit
    }

    /// Whether `stdout`, the output of the child, has this answer.
    pub(crate) fn is(&self, stdout: &str) -> bool {
        match self {
            Self::Printed(expected) => same_output(expected, stdout),
            Self::Returned(expected) => answer(stdout).is_some_and(|answer| {
                let only = serde_json::from_str::<[&RawValue; 1]>(expected.get());
                same_value(expected, answer) || only.is_ok_and(|[only]| same_value(only, answer))
            }),
        }
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Printed(text) => f.write_str(text),
            Self::Returned(value) => f.write_str(value.get()),
        }
    }
}

/// The result of a function: the last line that the child printed.
fn answer(stdout: &str) -> Option<&RawValue> {
    serde_json::from_str(stdout.lines().next_back()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(truth: &str) -> Vec<(String, String)> {
        let cases = Cases::read(truth).unwrap();
        let job = |number| cases.job(number, "c", &Ways::new());
        (0..cases.len()).map(job).map(|(job, stdin)| (job, stdin.to_owned())).collect()
    }

    #[test]
    fn programs_read_a_text_or_lines() {
        let truth = r#"{"inputs": ["1 2\n", ["3", "4"]], "outputs": ["3", ["7"]], "fn_name": null, "more": 1}"#;
        assert_eq!(jobs(truth), ["1 2\n", "3\n4"].map(|stdin| (r#"{"code":"c"}"#.to_owned(), stdin.to_owned())));
        assert!(Cases::read(truth).unwrap().expected(1).is("7\n"));
    }

    #[test]
    fn functions_have_arguments_in_a_list_or_in_lines() {
        let truth = r#"{"inputs": [[[1, 2], "a"], "[1, 2]\n\"a\"\n"], "outputs": [["x"], "\"x\""], "fn_name": "f"}"#;
        let job = |space| (format!(r#"{{"code":"c","function":"f","arguments":[[1,{space}2],"a"]}}"#), String::new());
        assert_eq!(jobs(truth), [job(" "), job(" ")]);
        let cases = Cases::read(truth).unwrap();
        for number in 0..2 {
            assert!(cases.expected(number).is("\"x\"\n"), "{number}");
            assert!(!cases.expected(number).is("\"y\"\n"), "{number}");
        }
        assert!(cases.expected(0).is("[\"x\"]\n"));
    }

    #[test]
    fn an_answer_is_the_last_line_and_json() {
        let cases = Cases::read(r#"{"inputs": [[]], "outputs": [900719925474099399], "fn_name": "f"}"#).unwrap();
        let is = |stdout| cases.expected(0).is(stdout);
        assert!(is("1\n900719925474099399\n"));
        assert!(!is("900719925474099398\n"));
        assert!(!is("900719925474099399\n1\n"));
        assert!(!is(""));
        assert!(!is("NaN\n"));
    }

    #[test]
    fn an_output_that_counts_is_not_blank() {
        let first = |most| {
            let cases = Cases::read(r#"{"inputs": ["1", "2"], "outputs": [" \n", "2"]}"#).unwrap();
            cases.first(most).map(|cases| cases.len())
        };
        assert_eq!(first(2), Ok(2));
        assert!(first(1).unwrap_err().contains("is blank"));
        let returned = r#"{"inputs": [[], []], "outputs": [null, [null]], "fn_name": "f"}"#;
        assert!(Cases::read(returned).unwrap().first(2).err().unwrap().contains("is blank"));
    }

    #[test]
    fn an_output_is_not_wrong_that_has_no_room() {
        let lines = Expected::Printed("12 34\n56 78\n".into());
        for (limit, stdout, may) in [
            (20, "12 34\n56 7", true),
            (20, "12  34 \n", true),
            (20, "", true),
            (20, "12 34\n57 7", false),
            (20, "12 34 56 7", false),
            (20, "12 34\n56 78\n9 9", false),
            (100, "12 34\n56 7", false),
        ] {
            assert_eq!(lines.may_exceed(limit, stdout), may, "{limit} {stdout:?}");
        }
        let list = Expected::Returned(RawValue::from_string("[1,2,3]".into()).unwrap());
        let may = [(10, "[1.0,2.0"), (10, ""), (30, "[1.0,2.0")].map(|(limit, stdout)| list.may_exceed(limit, stdout));
        assert_eq!(may, [true, false, false]);
    }

    #[test]
    fn what_is_no_test_is_refused() {
        for (truth, what) in [
            ("72", "is not {\"inputs\""),
            (r#"{"inputs": [], "outputs": []}"#, "any code would pass"),
            (r#"{"inputs": ["1"], "outputs": []}"#, "1 inputs and 0 outputs"),
            (r#"{"inputs": [1], "outputs": ["1"]}"#, "case 1 of the ground truth: a program reads"),
            (r#"{"inputs": ["1"], "outputs": ["x"], "fn_name": "f"}"#, "\"x\" is not JSON"),
            (r#"{"inputs": [1], "outputs": ["1"], "fn_name": "f"}"#, "neither a list of arguments"),
        ] {
            let error = Cases::read(truth).err().unwrap();
            assert!(error.contains(what), "{truth}: {error}");
        }
    }
}
