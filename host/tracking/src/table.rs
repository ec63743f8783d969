//! `[[log.trackers]]`: a tracker as it is configured.

use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The project of a table without one.
const PROJECT: &str = "gavel";

/// What kind of tracker it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrackerKind {
    /// Weights & Biases: a folder in the run's folder, which `wandb sync` sends.
    Wandb,
    /// A tracking server of MLflow.
    Mlflow,
    /// A server of Trackio.
    Trackio,
    /// JSON that is posted when the run ends, fails or pauses.
    Webhook,
}

impl TrackerKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wandb => "wandb",
            Self::Mlflow => "mlflow",
            Self::Trackio => "trackio",
            Self::Webhook => "webhook",
        }
    }
}

/// What a webhook is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunEvent {
    /// The run took all of its steps.
    Ended,
    /// A signal ended it earlier.
    Stopped,
    /// An error ended it.
    Failed,
    /// It waits for an endpoint that is down.
    Paused,
}

impl RunEvent {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Paused => "paused",
        }
    }
}

/// `[[log.trackers]]`: where the run is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrackerTable {
    /// `wandb`, `mlflow`, `trackio` or `webhook`.
    pub kind: TrackerKind,
    /// Its name in messages and in the run's folder; its kind by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variable with the address, in place of `url`: for an address that is a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_env: Option<String>,
    /// The environment variable with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The project, or the experiment of MLflow; `gavel` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What a webhook is told: `ended`, `stopped`, `failed`, `paused`; all of them by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<RunEvent>>,
}

impl TrackerTable {
    /// A tracker of this kind with defaults.
    pub fn new(kind: TrackerKind) -> Self {
        Self { kind, name: None, url: None, url_env: None, api_key_env: None, project: None, on: None }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.kind.as_str())
    }

    pub(crate) fn project(&self) -> &str {
        self.project.as_deref().unwrap_or(PROJECT)
    }

    pub(crate) fn is_told(&self, event: RunEvent) -> bool {
        self.on.as_ref().is_none_or(|on| on.contains(&event))
    }

    /// Checks the values without the environment and without the network.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = self.name();
        if name.is_empty() || name.starts_with('.') || name.len() > 64 || !name.chars().all(is_of_name) {
            return Err(("name", format!("must be letters, digits, `-`, `_` and `.`, not {name:?}")));
        }
        let kind = self.kind.as_str();
        let is_server = self.kind != TrackerKind::Wandb;
        let written = [
            ("url", self.url.is_some(), is_server),
            ("url_env", self.url_env.is_some(), is_server),
            ("api_key_env", self.api_key_env.is_some(), is_server),
            ("project", self.project.is_some(), self.kind != TrackerKind::Webhook),
            ("on", self.on.is_some(), self.kind == TrackerKind::Webhook),
        ];
        if let Some((key, ..)) = written.into_iter().find(|(_, is_written, is_known)| *is_written && !is_known) {
            let hint = match self.kind {
                TrackerKind::Wandb if key != "on" => {
                    "the run writes a folder, and `wandb sync` sends it, with the key of `wandb login`"
                }
                _ => "leave it out",
            };
            return Err((key, format!("a tracker of kind \"{kind}\" has no such key\nhint: {hint}")));
        }
        match (&self.url, &self.url_env) {
            (None, None) if is_server => {
                return Err(("url", format!("a tracker of kind \"{kind}\" needs the address of its server")));
            }
            (Some(_), Some(_)) => return Err(("url", "url_env is there too\nhint: leave one of them out".to_owned())),
            (Some(url), None) => check_url(url).map_err(|what| ("url", what))?,
            _ => {}
        }
        if self.project.as_ref().is_some_and(|project| project.trim().is_empty()) {
            return Err(("project", "must not be empty".to_owned()));
        }
        match &self.on {
            Some(on) if on.is_empty() => Err(("on", "the list is empty, so that nothing would be sent".to_owned())),
            _ => Ok(()),
        }
    }
}

/// Checks all trackers of a run.
///
/// # Errors
/// The number of a table, its key, and what is wrong with it.
pub fn check_trackers(tables: &[TrackerTable]) -> Result<(), (usize, &'static str, String)> {
    let mut names = BTreeSet::new();
    for (number, table) in tables.iter().enumerate() {
        table.check().map_err(|(key, what)| (number, key, what))?;
        if !names.insert(table.name()) {
            let what = format!("two trackers are named `{}`\nhint: give one of them another name", table.name());
            return Err((number, "name", what));
        }
    }
    Ok(())
}

/// What is wrong with an address, which is not shown where it has a key.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some() {
        return Err("a key does not belong here\nhint: name its variable in api_key_env, or the variable of the whole address in url_env".to_owned());
    }
    check_scheme(&parsed).map_err(|what| format!("{url:?} {what}"))
}

/// What is wrong with an address from the environment, which is not shown.
pub(crate) fn check_scheme(url: &Url) -> Result<(), String> {
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(()),
        _ => Err("starts neither with https:// nor with http://".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> String {
        let table: toml::Table = text.parse().unwrap();
        let tables: Vec<TrackerTable> = table["trackers"].clone().try_into().unwrap();
        match check_trackers(&tables) {
            Ok(()) => "ok".to_owned(),
            Err((number, key, what)) => format!("{number}.{key}: {what}"),
        }
    }

    #[test]
    fn trackers_are_checked() {
        for (tables, says) in [
            (
                "{kind='wandb'}, {kind='webhook', url_env='HOOK'}, {kind='mlflow', url='http://a:5000', api_key_env='K'}",
                "ok",
            ),
            (
                "{kind='trackio', url='https://a/b/', project='p'}, {kind='webhook', url='http://a', on=['failed']}",
                "ok",
            ),
            (
                "{kind='wandb', url='http://a'}",
                "0.url: a tracker of kind \"wandb\" has no such key\nhint: the run writes a folder, and `wandb sync` sends it, with the key of `wandb login`",
            ),
            ("{kind='mlflow'}", "0.url: a tracker of kind \"mlflow\" needs the address of its server"),
            (
                "{kind='mlflow', url='http://a', on=['failed']}",
                "0.on: a tracker of kind \"mlflow\" has no such key\nhint: leave it out",
            ),
            (
                "{kind='mlflow', url='http://a', url_env='A'}",
                "0.url: url_env is there too\nhint: leave one of them out",
            ),
            (
                "{kind='mlflow', url='localhost:5000'}",
                "0.url: \"localhost:5000\" starts neither with https:// nor with http://",
            ),
            (
                "{kind='webhook', url='https://a/?key=s3cret'}",
                "0.url: a key does not belong here\nhint: name its variable in api_key_env, or the variable of the whole address in url_env",
            ),
            (
                "{kind='mlflow', url='http://me:s3cret@a'}",
                "0.url: a key does not belong here\nhint: name its variable in api_key_env, or the variable of the whole address in url_env",
            ),
            (
                "{kind='wandb'}, {kind='wandb', project='x'}",
                "1.name: two trackers are named `wandb`\nhint: give one of them another name",
            ),
            ("{kind='wandb', name='../x'}", "0.name: must be letters, digits, `-`, `_` and `.`, not \"../x\""),
            ("{kind='wandb', project=' '}", "0.project: must not be empty"),
            ("{kind='webhook', url='http://a', on=[]}", "0.on: the list is empty, so that nothing would be sent"),
        ] {
            assert_eq!(check(&format!("trackers = [{tables}]")), says, "{tables}");
        }
    }
}
