//! One sample before all plugins of a run: each is called at most once, as
//! soon as it is known whether it is to be.

use crate::combine::{PluginCall, combine};
use crate::group::{Group, Judged};
use crate::scorer::Plugins;
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use gavel_data::{Blame, Evaluation, NotCalled, Outcome, Sample, SampleOutcome};
use std::sync::Arc;
use tokio::sync::OnceCell;

type Said = Result<Evaluation, NotCalled>;

/// A sample on its way.
pub(crate) struct Round<'a> {
    plugins: &'a Plugins,
    group: &'a Group,
    sample: &'a Arc<Sample>,
    seed: u64,
    said: Vec<OnceCell<Said>>,
    judged: OnceCell<Judged>,
}

impl<'a> Round<'a> {
    pub(crate) fn new(plugins: &'a Plugins, group: &'a Group, sample: &'a Arc<Sample>, seed: u64) -> Self {
        let said = plugins.0.iter().map(|_| OnceCell::new()).collect();
        Self { plugins, group, sample, seed, said, judged: OnceCell::new() }
    }

    /// What all plugins say of the sample. A component that is both scores it
    /// as a judger, which sees more.
    pub(crate) async fn evaluate(self) -> SampleOutcome {
        // The group waits for this sample also where no judger is to see it.
        join(join_all((0..self.said.len()).map(|number| self.said(number))), self.judged()).await;
        let calls = self.plugins.0.iter().zip(self.said).map(|(each, said)| PluginCall {
            name: each.plugin.name(),
            weight: each.weight,
            gate: each.when.only_if.as_ref().map(|condition| condition.plugin.as_str()),
            said: said.into_inner().unwrap_or_else(|| Ok(given_up())),
        });
        combine(calls.collect())
    }

    /// What the plugin of this number says; it is called once, whoever asks.
    fn said(&self, number: usize) -> BoxFuture<'_, &Said> {
        self.said[number].get_or_init(move || self.call(number)).boxed()
    }

    async fn call(&self, number: usize) -> Said {
        if let Some(why) = self.not_called(number).await {
            return Err(why);
        }
        let plugin = &self.plugins.0[number].plugin;
        if !plugin.is_judger() {
            return Ok(plugin.score(self.sample, self.seed).await);
        }
        let judged = self.judged().await.iter().find(|(judger, _)| *judger == number);
        Ok(judged.map_or_else(given_up, |(_, evaluation)| evaluation.clone()))
    }

    /// Why the plugin of this number is not to be called, once that is known.
    async fn not_called(&self, number: usize) -> Option<NotCalled> {
        let each = &self.plugins.0[number];
        if !each.when.is_for(self.sample.task.data_source.as_deref()) {
            return Some(NotCalled::DataSource);
        }
        let (gate, condition) = (each.gate?, each.when.only_if.as_ref()?);
        match self.said(gate).await {
            Ok(evaluation) => match evaluation.outcome.score() {
                Some(score) if condition.holds(score) => None,
                Some(_) => Some(NotCalled::Gate),
                None => Some(NotCalled::NoGate),
            },
            Err(NotCalled::NoGate) => Some(NotCalled::NoGate),
            Err(NotCalled::Gate | NotCalled::DataSource) => Some(NotCalled::Gate),
        }
    }

    /// What the judgers say of the sample, by their number among the plugins.
    async fn judged(&self) -> &Judged {
        self.judged.get_or_init(|| self.judge()).await
    }

    async fn judge(&self) -> Judged {
        let source = self.sample.task.data_source.as_deref();
        let judgers = |number: &usize| {
            let each = &self.plugins.0[*number];
            each.plugin.is_judger() && each.when.is_for(source)
        };
        // The samples of a group are of one task, so that all of them come here or none.
        let judgers: Vec<usize> = (0..self.said.len()).filter(judgers).collect();
        if judgers.is_empty() {
            return Judged::new();
        }
        let mut asked = Vec::with_capacity(judgers.len());
        for judger in judgers {
            if self.not_called(judger).await.is_none() {
                asked.push(judger);
            }
        }
        self.group.judged(self.plugins, self.sample, self.seed, asked).await.unwrap_or_default()
    }
}

fn given_up() -> Evaluation {
    let what = "its group was given up before it was whole".to_owned();
    Evaluation::without_call(Outcome::Fault { whose: Blame::Host, what })
}
