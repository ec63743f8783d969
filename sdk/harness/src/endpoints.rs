//! The endpoints and reward models of golden cases, and their replies in each case.

use crate::chat::FakeChat;
use crate::golden::FakeChatTable;
use crate::harness::Harness;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Fake endpoints whose replies restart in each case.
pub(crate) struct Endpoints<'a> {
    fakes: BTreeMap<&'a str, FakeChat>,
    chat: &'a BTreeMap<String, FakeChatTable>,
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Endpoints<'a> {
    /// The endpoints of `chat`, and the endpoints named in `others`, which reply
    /// in some cases.
    pub(crate) fn new(
        harness: &Harness,
        chat: &'a BTreeMap<String, FakeChatTable>,
        others: impl Iterator<Item = &'a String>,
    ) -> Self {
        let names = others.chain(chat.keys());
        let fakes: BTreeMap<_, _> = names.map(|name| (name.as_str(), FakeChat::replies::<String>([]))).collect();
        for (name, fake) in &fakes {
            harness.chat(*name, fake).reward_model(*name, fake);
        }
        Self { fakes, chat, asked: Default::default() }
    }

    /// Starts the replies of a case: its own, or the replies in `chat`.
    pub(crate) fn restart(&self, replies: &BTreeMap<String, Vec<String>>) {
        for (name, fake) in &self.fakes {
            if !fake.requests().is_empty() {
                self.asked.borrow_mut().insert((*name).to_owned());
            }
            let common = self.chat.get(*name).map(|table| &table.replies);
            fake.restart(replies.get(*name).or(common).map_or(&[], Vec::as_slice));
        }
    }

    /// The endpoints that have had no request so far.
    pub(crate) fn never_asked(&self) -> Vec<&'a str> {
        let asked = self.asked.borrow();
        let never = |(name, fake): &(&&'a str, &FakeChat)| fake.requests().is_empty() && !asked.contains(**name);
        self.fakes.iter().filter(never).map(|(name, _)| *name).collect()
    }
}
