//! The plugin that a command is about: a project, or a component by itself.

use super::build::{compile, compile_quick};
use super::shown_path::shown;
use crate::component::warn_if_edited;
use anyhow::{Context, Error, Result, bail};
use gavel_data::ShownLines;
use gavel_harness::{CaseFile, CaseResult, CaseResults, Harness, HarnessError, TestTable, run as run_cases, run_one};
use gavel_plugin::{LimitsTable, LoadError, PluginSpec, ProgramSpec};
use gavel_project::{MANIFEST, Project, QUICK_SOURCES};
use std::path::{Path, PathBuf};

/// A plugin to test, check or measure, with its settings.
pub struct Subject {
    pub spec: PluginSpec,
    pub table: TestTable,
    pub cases: Option<PathBuf>,
    /// The project that the component is built from.
    project: Option<Project>,
    /// Whether the parameters come from an argument.
    has_own_params: bool,
    /// Whether the component reads the sources when it is initialised.
    is_quick: bool,
}

impl Subject {
    /// The plugin at `path`, a folder or a component. `params` are JSON and take the place of those in plugin.toml.
    /// Nothing is built yet, so wrong arguments fail before a build.
    pub fn open(path: &Path, params: Option<&str>) -> Result<Self> {
        let is_component = path.is_file() || path.extension().is_some_and(|kind| kind == "wasm");
        let mut subject = match is_component {
            true => Self::component(path),
            false => Self::project(Project::open(path)?)?,
        };
        if let Some(params) = params {
            subject.spec.params = serde_json::from_str(params).context("--params is not a JSON object")?;
            subject.has_own_params = true;
        }
        Ok(subject)
    }

    /// Builds the component of a project.
    pub fn build(&self) -> Result<()> {
        match &self.project {
            Some(project) => compile(project).map(drop),
            None => Ok(()),
        }
    }

    /// Makes the component read the sources, in place of a build.
    pub fn build_quick(&mut self) -> Result<()> {
        let Some(project) = &self.project else { bail!("--quick is for a plugin's folder, not for a component") };
        self.spec.path = compile_quick(project)?;
        self.is_quick = true;
        self.spec.grants.read.push(format!("{}:{QUICK_SOURCES}", project.folder.display()));
        Ok(())
    }

    /// The file of rows: `given` or, without it, the plugin's cases.
    pub fn data(&self, given: Option<PathBuf>) -> Result<PathBuf> {
        match given.or_else(|| self.cases.clone()) {
            Some(path) => Ok(path),
            None => bail!("a component has no rows\nhint: name them with --data FILE"),
        }
    }

    /// A component by itself.
    fn component(path: &Path) -> Self {
        warn_if_edited(path);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            spec: PluginSpec::new(name, path),
            table: TestTable::default(),
            cases: None,
            project: None,
            has_own_params: false,
            is_quick: false,
        }
    }

    /// The component of a project, with the settings of its `[test]`.
    pub fn project(project: Project) -> Result<Self> {
        let manifest = project.folder.join(MANIFEST);
        let in_manifest = || format!("{}: [test]", shown(&manifest));
        let mut table: TestTable = match &project.manifest.test {
            Some(table) => table.clone().try_into().with_context(in_manifest)?,
            None => TestTable::default(),
        };
        table.limits.validate("test.limits").with_context(in_manifest)?;
        table.grant.check().with_context(in_manifest)?;
        for (name, program) in &mut table.exec {
            program.limits.validate(&format!("test.exec.{name}.limits")).with_context(in_manifest)?;
            program.path = project.folder.join(&program.path);
        }
        if let Some(name) = table.chat.keys().find(|name| !table.grant.chat.contains(name)) {
            bail!(
                "{}: chat.{name} has replies, and the endpoint is not granted\nhint: write grant = {{ chat = [{name:?}] }} there",
                in_manifest()
            );
        }
        for name in &table.grant.chat {
            table.chat.entry(name.clone()).or_default();
        }
        let mut grants = table.grant.clone();
        for rule in grants.read.iter_mut().filter(|rule| !rule.starts_with('/')) {
            *rule = format!("{}/{rule}", project.folder.display());
        }
        let spec = PluginSpec {
            params: table.params.clone(),
            limits: table.limits.over(&LimitsTable::default()),
            grants,
            ..PluginSpec::new(&project.manifest.name, project.component())
        };
        let cases = Some(project.folder.join(&table.cases));
        Ok(Self { spec, table, cases, project: Some(project), has_own_params: false, is_quick: false })
    }

    pub fn file(&self) -> Result<CaseFile> {
        match &self.cases {
            Some(path) => Ok(CaseFile::read(path.strip_prefix(".").unwrap_or(path))?),
            None => {
                bail!("a component has no cases\nhint: name them with --cases FILE, or test the folder of its plugin")
            }
        }
    }

    pub fn test(&self, file: &CaseFile) -> Result<CaseResults> {
        run_cases(&self.harness()?, &self.spec, &self.table.chat, file).map_err(|error| self.explain(error))
    }

    /// As [`test`](Self::test), for one case; `None` if the file has no case at `index`.
    pub fn test_one(&self, file: &CaseFile, index: usize) -> Result<Option<CaseResult>> {
        run_one(&self.harness()?, &self.spec, &self.table.chat, file, index).map_err(|error| self.explain(error))
    }

    /// The error, with the place of the parameters if the plugin refuses those in its plugin.toml.
    pub fn explain(&self, error: HarnessError) -> Error {
        if let Some(error) = self.of_sources(&error) {
            return error;
        }
        let of_params = matches!(&error, HarnessError::Load(LoadError::Params { .. } | LoadError::Init { .. }));
        match &self.project {
            Some(project) if of_params && !self.has_own_params => {
                let manifest = project.folder.join(MANIFEST);
                Error::msg(format!("{}: [test] params: {error}", shown(&manifest)))
            }
            _ => error.into(),
        }
    }

    /// The error of sources that cannot be imported. A component that reads them in `init` refuses its parameters so.
    fn of_sources(&self, error: &HarnessError) -> Option<Error> {
        let (HarnessError::Load(source) | HarnessError::CaseParams { source, .. }) = error else { return None };
        match source {
            LoadError::Params { plugin, what, .. } if self.is_quick && what.starts_with("main.py ") => {
                Some(Error::msg(format!("plugin `{plugin}`: {}", ShownLines(what))))
            }
            _ => None,
        }
    }

    /// A sandbox that has the programs of its `[test]`.
    pub fn harness(&self) -> Result<Harness> {
        let harness = Harness::new()?;
        for program in self.programs() {
            harness.program(program)?;
        }
        Ok(harness)
    }

    /// The programs of its `[test]`.
    pub fn programs(&self) -> Vec<ProgramSpec> {
        self.table.exec.iter().map(|(name, program)| program.program(name)).collect()
    }
}
