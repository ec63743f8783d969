//! Plugins on the command line: `[NAME=]PATH[:WEIGHT]` and their parameters.

use crate::component::component;
use anyhow::{Context, Result, anyhow, bail};
use gavel_data::KnownColumn;
use gavel_endpoint::LimiterTable;
use gavel_plugin::{Grants, Limits, PluginSpec, ProgramSpec};
use gavel_scoring::WeightedPlugin;
use gavel_scoring::chat::ChatEndpoint;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// One `--plugin`.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginArg {
    /// Absent if the plugin's folder has the name.
    name: Option<String>,
    /// A component, or the folder of a plugin.
    path: PathBuf,
    weight: f64,
}

impl std::str::FromStr for PluginArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) if !name.contains('/') => (Some(name), rest),
            _ => (None, text),
        };
        // A colon may also be part of a path: it starts a weight only where a number follows.
        let (path, weight) = match rest.rsplit_once(':') {
            Some((path, weight)) => match weight.parse::<f64>() {
                Ok(weight) if weight.is_finite() => (path, weight),
                Ok(weight) => return Err(format!("the weight {weight} is not finite")),
                Err(_) if weight.ends_with(".wasm") => (rest, 1.0),
                Err(_) => return Err(format!("{weight:?} is not a weight; write [NAME=]PATH[:WEIGHT]")),
            },
            None => (rest, 1.0),
        };
        if path.is_empty() {
            return Err("the path is empty; write [NAME=]PATH[:WEIGHT]".into());
        }
        if name.is_some_and(str::is_empty) {
            return Err("the name is empty; write [NAME=]PATH[:WEIGHT]".into());
        }
        Ok(Self { name: name.map(str::to_owned), path: path.into(), weight })
    }
}

impl PluginArg {
    /// The plugin with its weight. A plugin's folder stands for its built component.
    fn plugin(self, limits: Limits) -> Result<WeightedPlugin> {
        let Self { name, path, weight } = self;
        let (own_name, component) = component(&path)?;
        let Some(name) = name.or(own_name) else {
            bail!("--plugin {}: it has no file name\nhint: write NAME=PATH", path.display());
        };
        Ok(WeightedPlugin::new(PluginSpec { limits, ..PluginSpec::new(name, component) }, weight))
    }
}

/// Threads for plugins: as given, or one for each core.
pub fn workers(given: Option<NonZeroUsize>) -> Result<NonZeroUsize> {
    match given {
        Some(workers) => Ok(workers),
        None => std::thread::available_parallelism().context("cannot count the cores\nhint: set --workers"),
    }
}

/// The plugin that the value of `flag` is about, and the rest of the value: `NAME=VALUE`, or the value alone where there
/// is only one plugin. A value is a table, which begins with a brace.
pub fn of_plugin<'a>(flag: &str, text: &'a str, names: &'a [String]) -> Result<(&'a str, &'a str)> {
    match (text.trim_start().starts_with('{'), names) {
        (false, _) => text.split_once('=').with_context(|| format!("{flag} {text:?} is not NAME={{…}}")),
        (true, [only]) => Ok((only, text)),
        (true, _) => {
            bail!(
                "{flag} {text} does not name its plugin\nhint: write NAME={{…}}, where NAME is one of: {}",
                names.join(", ")
            )
        }
    }
}

/// `NAME=JSON`, or the JSON alone for the only one of the plugins; the JSON is an object.
pub fn params<'a>(text: &'a str, names: &'a [String]) -> Result<(&'a str, Map<String, Value>)> {
    let (name, json) = of_plugin("--params", text, names)?;
    let params = serde_json::from_str(json).with_context(|| format!("--params for `{name}` is not a JSON object"))?;
    Ok((name, params))
}

/// A duration with its unit, such as `2s` or `500ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration.is_zero() => Err("it must be longer than 0".into()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; write 2s or 500ms")),
    }
}

/// A number of bytes with its unit, such as `256MiB`.
pub fn bytes(text: &str) -> Result<usize, String> {
    let size: bytesize::ByteSize = text.parse().map_err(|_| format!("{text:?} is not a size; write 256MiB"))?;
    usize::try_from(size.0).map_err(|_| format!("{text} is more than this machine can address"))
}

/// Grants as a run's configuration writes them: `{ read = ["data:/data"] }`.
pub fn grants(text: &str) -> Result<Grants, String> {
    #[derive(serde::Deserialize)]
    struct Line {
        grant: Grants,
    }
    let line: Line = toml::from_str(&format!("grant = {text}"))
        .map_err(|error| format!("{}; write '{{ read = [\"data:/data\"] }}'", error.message()))?;
    line.grant.check().map_err(|error| error.to_string())?;
    Ok(line.grant)
}

/// `NAME=TABLE`, an endpoint as in a run's configuration.
pub fn endpoint(text: &str) -> Result<(String, ChatEndpoint), String> {
    #[derive(serde::Deserialize)]
    struct Line {
        chat: ChatEndpoint,
    }
    let example = "write judge='{ base_url = \"http://127.0.0.1:8000/v1\", model = \"NAME\" }'";
    let (name, table) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("it is not NAME=TABLE; {example}"))?;
    let line: Line =
        toml::from_str(&format!("chat = {table}")).map_err(|error| format!("{}; {example}", error.message()))?;
    line.chat.check()?;
    Ok((name.to_owned(), line.chat))
}

/// `NAME=TABLE`, a limiter as in a run's configuration.
pub fn limiter(text: &str) -> Result<(String, LimiterTable), String> {
    #[derive(serde::Deserialize)]
    struct Line {
        limiter: LimiterTable,
    }
    let example = "write judge='{ requests_per_second = 50 }'";
    let (name, table) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("it is not NAME=TABLE; {example}"))?;
    let line: Line =
        toml::from_str(&format!("limiter = {table}")).map_err(|error| format!("{}; {example}", error.message()))?;
    line.limiter.check()?;
    Ok((name.to_owned(), line.limiter))
}

/// The tables of a flag, each with a name of its own; `what` is the kind of thing that they name.
pub fn each_once<T>(flag: &str, what: &str, given: Vec<(String, T)>) -> Result<BTreeMap<String, T>> {
    let mut tables = BTreeMap::new();
    for (name, table) in given {
        if tables.contains_key(&name) {
            bail!("{flag} names the {what} `{name}` twice\nhint: give each {what} another name");
        }
        tables.insert(name, table);
    }
    Ok(tables)
}

/// `NAME=COLUMN`, a column that Gavel reads and its name in the file.
pub fn column(text: &str) -> Result<(KnownColumn, String), String> {
    let (name, column) = text
        .split_once('=')
        .filter(|(_, column)| !column.is_empty())
        .ok_or("it is not NAME=COLUMN; write ground_truth=final_answer")?;
    let known: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
    let known = KnownColumn::deserialize(known).map_err(|error| error.to_string())?;
    Ok((known, column.to_owned()))
}

/// `NAME=PATH`, a program with the limits that it has by default.
pub fn program(text: &str) -> Result<ProgramSpec, String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok(ProgramSpec { name: name.into(), path: path.into(), limits: Limits::default() })
        }
        _ => Err("it is not NAME=PATH; write python=target/plugins/python.wasm".into()),
    }
}

/// Joins the plugins with their `NAME=JSON` parameters and `NAME=TABLE`
/// grants.
pub fn weighted(
    plugins: Vec<PluginArg>,
    params: &[String],
    granted: &[String],
    limits: Limits,
) -> Result<Vec<WeightedPlugin>> {
    let mut plugins: Vec<WeightedPlugin> = plugins.into_iter().map(|arg| arg.plugin(limits)).collect::<Result<_>>()?;
    let names: Vec<String> = plugins.iter().map(|plugin| plugin.spec.name.clone()).collect();
    for text in params {
        let (name, params) = self::params(text, &names)?;
        named(&mut plugins, "--params", name)?.spec.params = params;
    }
    for text in granted {
        let (name, table) = of_plugin("--grant", text, &names)?;
        named(&mut plugins, "--grant", name)?.spec.grants =
            grants(table).map_err(|error| anyhow!("--grant for `{name}`: {error}"))?;
    }
    Ok(plugins)
}

/// Sets the plugins that judgers wait for, from `NAME=OTHER[,OTHER]`.
pub fn set_after(plugins: &mut [WeightedPlugin], after: &[String]) -> Result<()> {
    for text in after {
        let (name, others) =
            text.split_once('=').with_context(|| format!("--after {text:?} is not NAME=OTHER[,OTHER]"))?;
        named(plugins, "--after", name)?.when.after = others.split(',').map(|other| other.trim().to_owned()).collect();
    }
    Ok(())
}

/// Sets how many calls an instance answers, from `NAME=CALLS`, or `CALLS` alone for the only plugin.
pub fn set_reuse(plugins: &mut [WeightedPlugin], reuse: &[String]) -> Result<()> {
    for text in reuse {
        let (name, calls) = match (text.split_once('='), &*plugins) {
            (Some((name, calls)), _) => (name.to_owned(), calls),
            (None, [only]) => (only.spec.name.clone(), text.as_str()),
            (None, _) => bail!("--reuse {text} does not name its plugin\nhint: write NAME={text}"),
        };
        let calls = calls
            .parse()
            .map_err(|_| anyhow!("--reuse for `{name}`: {calls:?} is not a number of calls from 1 to {}", u32::MAX))?;
        named(plugins, "--reuse", &name)?.spec.reuse = Some(calls);
    }
    Ok(())
}

fn named<'a>(plugins: &'a mut [WeightedPlugin], flag: &str, name: &str) -> Result<&'a mut WeightedPlugin> {
    let known: Vec<_> = plugins.iter().map(|plugin| plugin.spec.name.clone()).collect();
    match plugins.iter_mut().find(|plugin| plugin.spec.name == name) {
        Some(plugin) => Ok(plugin),
        None => bail!("{flag} names the plugin `{name}`, but the plugins are: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_weights_are_optional() {
        let parse = |text: &str| text.parse::<PluginArg>();
        let arg = |name: Option<&str>, path: &str, weight| {
            Ok(PluginArg { name: name.map(str::to_owned), path: path.into(), weight })
        };
        assert_eq!(parse("a/math.wasm"), arg(None, "a/math.wasm", 1.0));
        assert_eq!(parse("m=a/math.wasm:0.5"), arg(Some("m"), "a/math.wasm", 0.5));
        assert_eq!(parse("a:b/math.wasm:-1"), arg(None, "a:b/math.wasm", -1.0));
        assert_eq!(parse("odd:name.wasm"), arg(None, "odd:name.wasm", 1.0));
        let plugin = |text: &str| parse(text).unwrap().plugin(Limits::default());
        assert_eq!(plugin("a/math.wasm").unwrap().spec.name, "math");
        assert!(plugin("..").is_err());
        assert!(parse("=math.wasm").is_err());
        assert!(parse("math.wasm:heavy").unwrap_err().contains("not a weight"));
        assert!(parse("m=:1").is_err());
    }

    #[test]
    fn the_only_plugin_needs_no_name() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let json = r#"{"pattern": "a=b"}"#;
        assert_eq!(of_plugin("--params", json, &names(&["format"])).unwrap(), ("format", json));
        let named = format!("format={json}");
        assert_eq!(of_plugin("--params", &named, &names(&["format", "math"])).unwrap(), ("format", json));
        let error = params(json, &names(&["format", "math"])).unwrap_err().to_string();
        assert!(error.ends_with("hint: write NAME={…}, where NAME is one of: format, math"), "{error}");
        assert!(params("format", &names(&["format"])).unwrap_err().to_string().ends_with("is not NAME={…}"));
    }

    #[test]
    fn columns_are_those_that_gavel_reads() {
        assert_eq!(column("ground_truth=a=b"), Ok((KnownColumn::GroundTruth, "a=b".to_owned())));
        assert!(column("prompt").unwrap_err().contains("write ground_truth=final_answer"));
        assert!(column("promt=q").unwrap_err().contains("unknown variant `promt`, expected one of `prompt`"));
    }

    #[test]
    fn endpoints_have_names_of_their_own() {
        let table = r#"{ base_url = "http://127.0.0.1:1", model = "m" }"#;
        assert!(endpoint(&format!("={table}")).unwrap_err().contains("NAME=TABLE"));
        let judge = || endpoint(&format!("judge={table}")).unwrap();
        assert_eq!(each_once("--chat", "endpoint", vec![judge()]).unwrap().len(), 1);
        let error = each_once("--chat", "endpoint", vec![judge(), judge()]).unwrap_err().to_string();
        assert!(error.contains("`judge` twice"), "{error}");
        assert!(limiter("judge={ requests_per_second = 0.0 }").unwrap_err().contains("above 0"));
    }

    #[test]
    fn grants_are_written_as_in_a_configuration() {
        let found = grants(r#"{ read = ["data:/data"], clock = "real" }"#).unwrap();
        assert_eq!((found.read, found.clock), (vec!["data:/data".to_owned()], gavel_plugin::ClockGrant::Real));
        for (wrong, what) in [
            ("{ reads = [] }", "reads"),
            (r#"{ clock = "fast" }"#, "fast"),
            ("read", "write '{ read"),
            (r#"{ http = ["judge.example/score"] }"#, "whole server"),
        ] {
            let error = grants(wrong).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
