//! The questions to a component: one type for each function of the contract.

use crate::bindings::gavel::plugin::types;
use crate::call::loaded::Loaded;
use crate::call::verdict::{self, cut};
use crate::engine::Exports;
use crate::imports::{ReferenceRef, SampleRef, State};
use gavel_data::{Blame, Columns, Outcome, SampleInput};
use std::future::Future;
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime::{Result, Store};

/// A function of the contract and its arguments.
pub(crate) trait Question: Clone + Send + 'static {
    /// The plugin's answer, in the host's types.
    type Answer: Send + 'static;

    /// Distinguishes this call from other calls of the same plugin and seed.
    fn input(&self) -> String;

    /// The number of handles that the plugin gets with it.
    fn handles(&self) -> usize;

    /// Asks. The outer error is a trap.
    fn ask(
        self,
        plugin: Arc<Loaded>,
        exports: &Exports,
        store: &mut Store<State>,
    ) -> impl Future<Output = Result<Self::Answer>> + Send;

    /// Whether the instance can answer further calls after this answer.
    fn is_sound(answer: &Self::Answer) -> bool;
}

/// `reward.score`
#[derive(Clone)]
pub(crate) struct Score(pub(crate) SampleInput);

impl Question for Score {
    type Answer = Outcome;

    fn input(&self) -> String {
        self.0.hash()
    }

    fn handles(&self) -> usize {
        2
    }

    async fn ask(self, plugin: Arc<Loaded>, exports: &Exports, store: &mut Store<State>) -> Result<Outcome> {
        let table = &mut store.data_mut().table;
        let reference = table.push(ReferenceRef(self.0.sample.task.clone()))?;
        let sample = table.push(SampleRef(self.0.clone()))?;
        let handles = (Resource::new_borrow(sample.rep()), Resource::new_borrow(reference.rep()));
        let answer = exports.score(store, handles.0, handles.1).await?;
        let table = &mut store.data_mut().table;
        table.delete(sample)?;
        table.delete(reference)?;
        Ok(match answer {
            Ok(verdict) => verdict::outcome(verdict, &plugin.info, &self.0.sample),
            Err(failure) => verdict::failed(failure),
        })
    }

    fn is_sound(answer: &Outcome) -> bool {
        matches!(answer, Outcome::Scored(_) | Outcome::Abstained(_))
    }
}

/// `judger.judge`: one outcome for each sample, in order.
#[derive(Clone)]
pub(crate) struct Judge(pub(crate) Arc<[SampleInput]>);

impl Question for Judge {
    type Answer = Vec<Outcome>;

    fn input(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for sample in &*self.0 {
            hasher.update(sample.hash().as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    fn handles(&self) -> usize {
        self.0.len() + 1
    }

    async fn ask(self, plugin: Arc<Loaded>, exports: &Exports, store: &mut Store<State>) -> Result<Vec<Outcome>> {
        let Some(first) = self.0.first() else { return Ok(Vec::new()) };
        let table = &mut store.data_mut().table;
        let reference = table.push(ReferenceRef(first.sample.task.clone()))?;
        let samples = self.0.iter().map(|sample| Ok(table.push(SampleRef(sample.clone()))?));
        let samples = samples.collect::<Result<Vec<Resource<SampleRef>>>>()?;
        let answer = exports.judge(store, &samples, Resource::new_borrow(reference.rep())).await?;
        store.data_mut().table.delete(reference)?;
        Ok(verdicts(answer, &plugin, &self.0))
    }

    fn is_sound(answer: &Vec<Outcome>) -> bool {
        answer.iter().all(Score::is_sound)
    }
}

fn verdicts(
    answer: Result<Vec<types::Verdict>, types::Failure>,
    plugin: &Loaded,
    samples: &[SampleInput],
) -> Vec<Outcome> {
    let all = |outcome: Outcome| vec![outcome; samples.len()];
    match answer {
        Ok(verdicts) if verdicts.len() == samples.len() => {
            let each = verdicts.into_iter().zip(samples);
            each.map(|(verdict, input)| verdict::outcome(verdict, &plugin.info, &input.sample)).collect()
        }
        Ok(verdicts) => {
            let what = format!("{} verdicts were given for {} samples", verdicts.len(), samples.len());
            all(Outcome::Fault { whose: Blame::Plugin, what })
        }
        Err(failure) => all(verdict::failed(failure)),
    }
}

/// `taskset.len`
#[derive(Clone)]
pub(crate) struct Len;

impl Question for Len {
    type Answer = Option<u64>;

    fn input(&self) -> String {
        "len".into()
    }

    fn handles(&self) -> usize {
        0
    }

    async fn ask(self, _: Arc<Loaded>, exports: &Exports, store: &mut Store<State>) -> Result<Option<u64>> {
        exports.len(store).await
    }

    fn is_sound(_: &Option<u64>) -> bool {
        true
    }
}

/// `taskset.get`: the columns of a row.
#[derive(Clone)]
pub(crate) struct Get {
    pub(crate) index: u64,
    pub(crate) seed: u64,
}

impl Question for Get {
    type Answer = Result<Columns, Outcome>;

    fn input(&self) -> String {
        format!("row {}", self.index)
    }

    fn handles(&self) -> usize {
        0
    }

    async fn ask(self, _: Arc<Loaded>, exports: &Exports, store: &mut Store<State>) -> Result<Self::Answer> {
        let answer = exports.get(store, self.index, self.seed).await?;
        Ok(answer.map_err(verdict::failed).and_then(|row| columns(&row)))
    }

    fn is_sound(answer: &Self::Answer) -> bool {
        answer.is_ok()
    }
}

fn columns(row: &str) -> Result<Columns, Outcome> {
    serde_json::from_str(row).map_err(|error| {
        let what = format!("the row is not a JSON object: {error}: {}", cut(row.to_owned()));
        Outcome::Fault { whose: Blame::Plugin, what }
    })
}
