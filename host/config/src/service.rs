//! The standard plugins behind a `[[reward]]` with `url`, a server that gives verdicts, or with `reward_model`.

use crate::reward::{RewardTable, ServiceBatch};
use gavel_endpoint::OnEndpointDown;
use gavel_plugin::{ClockGrant, Grants, HttpServers};
use serde_json::{Map, json};
use std::path::PathBuf;

impl RewardTable {
    /// Refuses keys that a server does not have, or that only a server has.
    pub(super) fn check_service(&self) -> Result<(), &'static str> {
        match (&self.url, &self.path) {
            (None, None) if self.reward_model.is_none() => Err(
                "it has none of path, url and reward_model\nhint: name a component with path, a server with url, or a reward model",
            ),
            (None, _) if self.api_key_env.is_some() => Err("api_key_env is for a reward with url"),
            (None, _) if self.retries.is_some() => Err("retries is for a reward with url"),
            (None, _) if self.limit.is_some() => Err(
                "limit is for a reward with url\nhint: the requests of a component are limited beside its grant: grant = { http = […], limit = \"NAME\" }",
            ),
            (None, _) if self.on_endpoint_down.is_some() => Err("on_endpoint_down is for a reward with url"),
            (Some(_), _) if self.on_endpoint_down == Some(OnEndpointDown::Stop) => {
                Err("on_endpoint_down = \"stop\" is for [chat.NAME]\nhint: use \"pause\" or \"drop\"")
            }
            (None, _) if self.batch != ServiceBatch::Sample => Err("batch is for a reward with url"),
            (None, _) => Ok(()),
            (Some(_), _) if !self.params.is_empty() || self.reuse.is_some() => {
                Err("params and reuse are for a component, not for a reward with url")
            }
            (Some(urls), _) if urls.all().is_empty() => Err("url is an empty list"),
            (Some(urls), _) if urls.all().iter().any(|url| origin(url).is_none()) => {
                Err("url must be like http://127.0.0.1:8000/score, with http or https and without a password")
            }
            (Some(_), _) => Ok(()),
        }
    }

    /// The component, its parameters and its grants.
    pub(super) fn component(&self) -> (PathBuf, Map<String, serde_json::Value>, Grants) {
        let path = self.path.clone();
        if let Some(model) = &self.reward_model {
            let mut grants = self.grant.clone();
            grants.reward_model.push(model.clone());
            return (standard_plugin("reward-model"), self.reward_model_params(model), grants);
        }
        let Some((urls, url)) = self.url.as_ref().and_then(|urls| Some((urls.all(), urls.all().first()?))) else {
            return (path.unwrap_or_default(), self.params.clone(), self.grant.clone());
        };
        let name = match self.batch {
            ServiceBatch::Sample => "service",
            ServiceBatch::Group => "service-group",
        };
        let mut params = Map::from_iter([("url".to_owned(), json!(url))]);
        params.extend(self.api_key_env.as_ref().map(|variable| ("api_key_env".to_owned(), json!(variable))));
        params.extend(self.retries.map(|retries| ("retries".to_owned(), json!(retries))));
        let mut grants = Grants { clock: ClockGrant::Real, ..self.grant.clone() };
        grants.http.extend(urls.iter().filter_map(|url| origin(url)));
        let on_endpoint_down = self.on_endpoint_down.unwrap_or_default();
        if urls.len() > 1 || !on_endpoint_down.is_default() {
            grants.servers = Some(HttpServers { urls: urls.to_vec(), on_endpoint_down });
        }
        grants.env.extend(self.api_key_env.clone());
        grants.limit = self.limit.clone().or(grants.limit);
        (path.unwrap_or_else(|| standard_plugin(name)), params, grants)
    }
}

/// Scheme, host and port of a URL.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme))?;
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    (!authority.contains('@')).then(|| format!("{scheme}://{authority}"))
}

/// The file of a standard plugin: `plugins/` lies beside the folder of this program, in an archive and after a build.
fn standard_plugin(name: &str) -> PathBuf {
    let program = std::env::current_exe().and_then(|program| program.canonicalize()).unwrap_or_default();
    let folder = program.ancestors().nth(2).map_or_else(PathBuf::new, PathBuf::from);
    folder.join("plugins").join(name).with_extension("wasm")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_plugin::LimitsTable;

    fn table(more: &str) -> RewardTable {
        toml::from_str(&format!("name = \"lean\"\n{more}")).unwrap()
    }

    #[test]
    fn a_server_is_asked_by_a_component_that_may_reach_it_alone() {
        let table = table(
            "url = \"https://lean.example:8443/score?x=1\"\napi_key_env = \"KEY\"\nretries = 0\nlimit = \"lean\"",
        );
        let spec = table.plugin(&LimitsTable::default()).spec;
        assert!(spec.path.ends_with("plugins/service.wasm"), "{}", spec.path.display());
        let params = json!({"url": "https://lean.example:8443/score?x=1", "api_key_env": "KEY", "retries": 0});
        assert_eq!(serde_json::Value::Object(spec.params), params);
        let (http, env) = (vec!["https://lean.example:8443".to_owned()], vec!["KEY".to_owned()]);
        assert_eq!(
            spec.grants,
            Grants { http, env, limit: Some("lean".into()), clock: ClockGrant::Real, ..Grants::default() }
        );
    }

    #[test]
    fn a_group_is_asked_by_another_component_and_further_grants_are_kept() {
        let table =
            table("url = \"http://judge.internal\"\nbatch = \"group\"\ngrant = { http = [\"http://10.0.0.5\"] }");
        let spec = table.plugin(&LimitsTable::default()).spec;
        assert!(spec.path.ends_with("plugins/service-group.wasm"));
        assert_eq!(spec.grants.http, ["http://10.0.0.5", "http://judge.internal"]);
        let own = RewardTable { path: Some("own.wasm".into()), ..table };
        assert_eq!(own.plugin(&LimitsTable::default()).spec.path, PathBuf::from("own.wasm"));
    }

    #[test]
    fn several_servers_answer_for_the_first() {
        let urls = ["http://10.0.0.5:8000/score", "http://10.0.0.6:8000/score"];
        let table = table(&format!("url = {urls:?}\non_endpoint_down = \"pause\""));
        table.validate().unwrap();
        let spec = table.plugin(&LimitsTable::default()).spec;
        assert_eq!(spec.params["url"], urls[0]);
        assert_eq!(spec.grants.http, ["http://10.0.0.5:8000", "http://10.0.0.6:8000"]);
        let servers = spec.grants.servers.unwrap();
        assert_eq!((servers.urls, servers.on_endpoint_down), (urls.map(str::to_owned).into(), OnEndpointDown::Pause));
    }

    #[test]
    fn a_reward_model_is_asked_by_a_component_that_is_granted_it() {
        let spec =
            table("reward_model = \"quality\"\nscale = 0.5\nclip = [-1, 1]").plugin(&LimitsTable::default()).spec;
        assert!(spec.path.ends_with("plugins/reward-model.wasm"), "{}", spec.path.display());
        let params = json!({"model": "quality", "scale": 0.5, "clip": [-1.0, 1.0]});
        assert_eq!(serde_json::Value::Object(spec.params), params);
        assert_eq!(spec.grants, Grants { reward_model: vec!["quality".into()], ..Grants::default() });
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (more, what) in [
            ("", "none of path, url and reward_model"),
            ("path = \"a.wasm\"\nreward_model = \"b\"", "only one of path, url and reward_model"),
            ("path = \"a.wasm\"\nscale = 2.0", "scale, clip and credit are for a reward with reward_model"),
            ("reward_model = \"b\"\nretries = 1", "retries is for a reward with url"),
            ("reward_model = \"b\"\nparams = { c = 1 }", "params and reuse are for a component"),
            ("path = \"a.wasm\"\napi_key_env = \"KEY\"", "api_key_env is for a reward with url"),
            ("path = \"a.wasm\"\nretries = 1", "retries is for a reward with url"),
            ("path = \"a.wasm\"\non_endpoint_down = \"pause\"", "on_endpoint_down is for a reward with url"),
            ("url = \"http://a\"\non_endpoint_down = \"stop\"", "is for [chat.NAME]"),
            ("url = []", "an empty list"),
            ("path = \"a.wasm\"\nlimit = \"b\"", "limit is for a reward with url"),
            ("path = \"a.wasm\"\nbatch = \"group\"", "batch is for a reward with url"),
            ("url = \"http://a\"\nparams = { b = 1 }", "params and reuse are for a component"),
            ("url = \"lean.example\"", "url must be like"),
            ("url = \"ftp://lean.example\"", "url must be like"),
            ("url = \"http://\"", "url must be like"),
            ("url = \"http://user:secret@lean.example\"", "without a password"),
        ] {
            let error = table(more).validate().unwrap_err().to_string();
            assert!(error.starts_with("reward `lean`: ") && error.contains(what), "{more}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
