//! Wraps an existing reward function in Python, written for another library, in
//! a project that calls it as that library does.

use crate::embedded;
use crate::error::Error;
use crate::language::Language;
use crate::language::python::{APP, ENTRY, WORLD_MODULE, python, scan};
use crate::name;
use crate::scaffold::{Created, Files, sdk, write};
use std::fs;
use std::path::{Path, PathBuf};

/// The name that verl's users give the function.
const OF_VERL: &str = "compute_score";

/// The convention of calling a reward function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convention {
    /// verl: `compute_score(data_source, solution_str, ground_truth,
    /// extra_info, **reward_kwargs)`, a sample a call.
    Verl,
    /// TRL: `f(prompts, completions, **columns)`, lists of samples.
    Trl,
}

impl Convention {
    /// Its folder below `python/template`.
    fn folder(self) -> &'static str {
        match self {
            Self::Verl => "verl",
            Self::Trl => "trl",
        }
    }

    /// The arguments that a function is always called with.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Verl => &["data_source", "solution_str", "ground_truth", "extra_info"],
            Self::Trl => &["completions"],
        }
    }
}

/// A function to wrap in a plugin.
#[derive(Debug, Clone, Copy)]
pub struct Wrap<'a> {
    /// The name of the plugin and of its folder.
    pub name: &'a str,
    /// How the function is called; by default as its arguments tell.
    pub convention: Option<Convention>,
    /// The file that has it.
    pub file: &'a Path,
    /// Its name; by default `compute_score` for verl and the only function for
    /// TRL. Without a convention, the first of these that there is.
    pub function: Option<&'a str>,
    /// The file with its packages; by default the `requirements.txt` beside it,
    /// if there is one.
    pub requirements: Option<&'a Path>,
    /// Its golden cases, JSON Lines; without them, a case to be filled in.
    pub cases: Option<&'a str>,
}

/// A project around a function.
#[derive(Debug)]
pub struct Wrapped {
    /// The project.
    pub created: Created,
    /// The function.
    pub function: String,
    /// The author's files that were copied, by their paths in the project.
    pub files: Vec<PathBuf>,
    /// The problems to solve before it works, a sentence each.
    pub problems: Vec<String>,
}

/// Creates the project of `wrap` in a folder of its name below `parent`. The
/// function's file, and the files beside it that it imports, are copied
/// unchanged.
///
/// # Errors
/// The name is not allowed, the file or the function is missing or cannot be
/// called that way, or the folder exists and is not empty.
pub fn wrap(wrap: Wrap<'_>, parent: &Path) -> Result<Wrapped, Error> {
    name::check(wrap.name)?;
    let path = fs::canonicalize(wrap.file).map_err(Error::file("read", wrap.file))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let module = module(&path)?;
    let found = scan::scan(&python(folder), folder, &module, &[], false)?;
    let (function, convention) = choose(&wrap, &found.functions)?;

    let beside = folder.join("requirements.txt");
    let requirements = wrap.requirements.or_else(|| beside.is_file().then_some(&beside));
    let mut files = Files::new();
    let template = format!("python/template/{}", convention.folder());
    for (path, bytes) in embedded::under(&template) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.replace("{{name}}", wrap.name).replace("{{module}}", &module).replace("{{function}}", function);
        files.insert(path.into(), text.into_bytes());
    }
    if let Some(cases) = wrap.cases {
        files.insert("cases.jsonl".into(), cases.into());
    }
    let wanted = match requirements {
        Some(path) => fs::read(path).map_err(Error::file("read", path))?,
        None => b"# Packages that the function imports, a line each; they must be pure Python.\n".to_vec(),
    };
    files.insert("requirements.txt".into(), wanted);
    for local in &found.local {
        // A module or a package.
        let top = local.iter().next().map(|name| Path::new(name).with_extension(""));
        if [ENTRY, "gavel", APP, WORLD_MODULE].iter().any(|taken| top.as_deref() == Some(Path::new(taken))) {
            return Err(Error::Source {
                what: format!("{} cannot be copied: the plugin has a module of that name", local.display()),
                hint_text: "give the file, or its folder, another name".into(),
            });
        }
        let path = folder.join(local);
        files.insert(local.clone(), fs::read(&path).map_err(Error::file("read", &path))?);
    }
    files.extend(sdk(Language::Python));

    // Whether a package contains it is known only when the package is
    // installed.
    let problems = found.problems.iter().filter(|problem| !(problem.missing && requirements.is_some()));
    let problems = problems.chain(&found.warnings).map(|place| format!("{place}\n  {}", place.hint)).collect();
    let created = write(parent.join(wrap.name), &files)?;
    Ok(Wrapped { created, function: function.to_owned(), files: found.local, problems })
}

/// The name that a file is imported by.
fn module(path: &Path) -> Result<String, Error> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let word = stem.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && stem.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if word && path.extension().is_some_and(|extension| extension == "py") {
        return Ok(stem);
    }
    Err(Error::Source {
        what: format!("{} cannot be imported by its name", path.display()),
        hint_text: "name a file such as `my_reward.py`, of letters, digits and underscores".into(),
    })
}

/// The function that is wrapped, and how it is called.
fn choose<'a>(wrap: &Wrap<'a>, functions: &'a [scan::Function]) -> Result<(&'a str, Convention), Error> {
    let file = wrap.file.display();
    let all: Vec<_> = functions.iter().map(|function| function.name.as_str()).collect();
    let list = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    let public: Vec<_> = functions.iter().filter(|function| !function.name.starts_with('_')).collect();
    let name = match (wrap.function, wrap.convention, &public[..]) {
        (Some(name), ..) => name,
        (None, Some(Convention::Verl), _) => OF_VERL,
        (None, None, _) if all.contains(&OF_VERL) => OF_VERL,
        (None, _, [only]) => only.name.as_str(),
        (None, _, _) => {
            return Err(Error::Source {
                what: format!("{file} has more than one function, or none; its functions: {list}"),
                hint_text: format!("name the one that is the reward: {file}:FUNCTION"),
            });
        }
    };
    let Some(function) = functions.iter().find(|function| function.name == name) else {
        return Err(Error::Source {
            what: format!("{file} has no function `{name}` at its top; its functions: {list}"),
            hint_text: format!("name the one that is the reward: {file}:FUNCTION"),
        });
    };
    let has = |argument: &str| function.arguments.iter().any(|known| known == argument);
    let taken = || if function.arguments.is_empty() { "nothing".to_owned() } else { function.arguments.join(", ") };
    let convention = match wrap.convention {
        Some(convention) => convention,
        None if has("solution_str") => Convention::Verl,
        None if has("completions") => Convention::Trl,
        None => {
            return Err(Error::Source {
                what: format!(
                    "`{name}` of {file} takes neither `solution_str`, as a reward of verl, nor `completions`, as one of TRL; it takes: {}",
                    taken()
                ),
                hint_text: "name its arguments so, or make a plugin with `gavel plugin new NAME --lang python`".into(),
            });
        }
    };
    if convention == Convention::Trl && has("completion_ids") {
        return Err(Error::Source {
            what: format!("`{name}` of {file} takes `completion_ids`, and a plugin has no tokens"),
            hint_text: "let it work on the texts in `completions`".into(),
        });
    }
    match convention.arguments().iter().find(|argument| !function.takes_any && !has(argument)) {
        None => Ok((&function.name, convention)),
        Some(argument) => Err(Error::Source {
            what: format!("`{name}` of {file} does not take `{argument}`; it takes: {}", taken()),
            hint_text: format!("it is called with {}, by these names", convention.arguments().join(", ")),
        }),
    }
}
