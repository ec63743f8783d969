//! A component's bytes, and its code, which is compiled now or was compiled at an
//! earlier start.

use crate::compile::{Code, Form, Key, LoadBudget, NotCompiled, Order, TooCostly};
use crate::engine::{Engines, Shared};
use crate::error::LoadError;
use crate::load::spec::PluginSpec;
use gavel_data::files::open_regular;
use std::io::Read;
use std::path::{Path, PathBuf};
use wasmtime::component::Component;

/// Larger components take a second or more to compile, which is logged.
const LARGE: usize = 2 << 20;
/// Functions of larger components are compiled once for all snapshots, and for
/// all components of the same language. In smaller ones, compiling all functions
/// is as fast as reading them.
const KEPT_FUNCTIONS: usize = 512 << 10;

/// The extensions of source code in the languages of plugins.
const SOURCES: [&str; 7] = ["py", "rs", "js", "ts", "c", "cpp", "toml"];

/// The bytes of a component. A file that is larger than `resources.loading.size` is not read.
pub(crate) fn read(shared: &Shared, plugin: &str, path: &Path) -> Result<Vec<u8>, LoadError> {
    let allowed = shared.compiler.limits.size;
    let failed = |source| LoadError::Read { plugin: plugin.into(), path: path.into(), source };
    if path.is_dir() {
        return Err(LoadError::Source { plugin: plugin.into(), path: path.into() });
    }
    let file = open_regular(path).map_err(failed)?;
    let found = usize::try_from(file.metadata().map_err(failed)?.len()).unwrap_or(usize::MAX);
    if found > allowed {
        let what = TooCostly::Size { found, allowed };
        return Err(LoadError::TooCostly { plugin: plugin.into(), path: path.into(), what });
    }
    let mut bytes = Vec::with_capacity(found);
    // A file that grows is refused by the compiler.
    file.take(allowed.saturating_add(1) as u64).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The code of a component, compiled now or at an earlier start.
pub(crate) fn compile_once(
    shared: &Shared,
    engines: &Engines,
    name: &str,
    path: &Path,
    component: &[u8],
    form: Form,
) -> Result<Code, LoadError> {
    let kind: &[u8] = match form {
        Form::Plain => b"program",
        Form::Instrumented => b"instrumented",
        Form::Snapshot => b"snapshot",
    };
    let key = Key::new(engines.reference()?, &[component, kind]);
    if let Some(((), code)) = shared.cache.find(&key) {
        return Ok(code);
    }
    if component.len() > LARGE {
        tracing::info!("compiling plugin `{name}` ({} MB); later starts take it from the cache", component.len() >> 20);
    }
    let functions = functions_file(shared, component);
    let order = Order { component, form, fuel: engines.fuel(), functions: functions.as_deref() };
    let code = compile(shared, name, path, order)?;
    Ok(shared.cache.keep(&key, &(), code))
}

/// The component of `spec` as it was built, which may not be callable.
pub(crate) fn compiled(shared: &Shared, spec: &PluginSpec, bytes: &[u8]) -> Result<Component, LoadError> {
    let engines = shared.engines(&spec.limits);
    let code = compile_once(shared, engines, &spec.name, &spec.path, bytes, Form::Plain)?;
    Ok(engines.place(&code, spec.limits.memory)?.component)
}

/// Compiles a component. Any other file gets an error that names its kind.
fn compile(shared: &Shared, name: &str, path: &Path, order: Order<'_>) -> Result<Code, LoadError> {
    let (plugin, path) = (name.to_owned(), path.to_owned());
    match order.component {
        [b'\0', b'a', b's', b'm', 1, 0, 0, 0, ..] => return Err(LoadError::CoreModule { plugin, path }),
        [b'\0', b'a', b's', b'm', ..] => {}
        _ if Path::extension(&path).is_some_and(|extension| SOURCES.iter().any(|source| extension == *source)) => {
            return Err(LoadError::Source { plugin, path });
        }
        _ => return Err(LoadError::Invalid { plugin, path, what: "it is not WebAssembly".into() }),
    }
    shared.compiler.compile(order, &shared.cache).map_err(|error| match error {
        NotCompiled::Invalid(what) => LoadError::Invalid { plugin, path, what },
        NotCompiled::TooCostly(TooCostly::Invalid(what)) => LoadError::Invalid { plugin, path, what },
        NotCompiled::TooCostly(what) => LoadError::TooCostly { plugin, path, what },
        NotCompiled::Exceeded(which) => {
            let limits = &shared.compiler.limits;
            let allowed = match which {
                LoadBudget::Memory => format!("{} of memory", bytesize::ByteSize(limits.memory as u64)),
                LoadBudget::Cpu => format!("{} of processor time", humantime::format_duration(limits.cpu)),
                LoadBudget::Timeout => humantime::format_duration(limits.timeout).to_string(),
            };
            LoadError::Exceeded { plugin, path, which, allowed }
        }
        NotCompiled::Host(what) => LoadError::Engine(format!("cannot compile plugin `{plugin}`: {what}")),
    })
}

/// The file for the code of a component's functions, if the component is large enough.
pub(crate) fn functions_file(shared: &Shared, component: &[u8]) -> Option<PathBuf> {
    if component.len() < KEPT_FUNCTIONS { None } else { shared.cache.functions() }
}
