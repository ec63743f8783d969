//! The sessions that are open, by their ids and keys.

use crate::answers::ended;
use crate::error::GatewayError;
use crate::keys::{hash, key, secret, unauthorized};
use crate::session::ChatSession;
use axum::http::HeaderMap;
use blake3::Hash;
use gavel_serve::openai::ApiError;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many ended sessions are remembered, so that their late requests learn that they ended.
const REMEMBERED: usize = 1 << 16;

/// The sessions of a gateway.
#[derive(Default)]
pub(crate) struct Registry(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    /// By the hash of the id.
    open: HashMap<Hash, Arc<dyn ChatSession>>,
    /// The hash of each open session's id, by the hash of its key.
    by_key: HashMap<Hash, Hash>,
    /// The hashes of ids and keys of ended sessions, the oldest first.
    ended: VecDeque<Hash>,
    is_ended: HashSet<Hash>,
}

/// A session that is open until this is dropped.
pub struct OpenSession {
    registry: Arc<Registry>,
    base_url: String,
    id: String,
    key: String,
}

impl OpenSession {
    /// Where its clients find the API: the address up to `/v1`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The id in its address, which nobody guesses.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key of its clients.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        let mut sessions = self.registry.lock();
        let (id, key) = (hash(&self.id), hash(&self.key));
        sessions.by_key.remove(&key);
        let closed = sessions.open.remove(&id);
        for hash in [id, key] {
            sessions.ended.push_back(hash);
            sessions.is_ended.insert(hash);
        }
        while sessions.ended.len() > 2 * REMEMBERED {
            if let Some(oldest) = sessions.ended.pop_front() {
                sessions.is_ended.remove(&oldest);
            }
        }
        drop(sessions);
        drop(closed);
    }
}

impl Registry {
    /// Opens a session, whose requests go to `address`.
    ///
    /// # Errors
    /// The machine gives no random numbers.
    pub(crate) fn open(
        self: &Arc<Self>,
        address: &str,
        session: Arc<dyn ChatSession>,
    ) -> Result<OpenSession, GatewayError> {
        let (id, key) = (secret("")?, secret("sk-gavel-")?);
        let mut sessions = self.lock();
        sessions.by_key.insert(hash(&key), hash(&id));
        sessions.open.insert(hash(&id), session);
        drop(sessions);
        Ok(OpenSession { registry: self.clone(), base_url: format!("{address}/sessions/{id}/v1"), id, key })
    }

    /// The session of a request, by the id in its address, its key, or both.
    ///
    /// # Errors
    /// It names no open session, or two different ones.
    pub(crate) fn find(&self, id: Option<&str>, headers: &HeaderMap) -> Result<Arc<dyn ChatSession>, ApiError> {
        let (id, key) = (id.map(hash), key(headers)?.map(hash));
        let sessions = self.lock();
        // Whether a session was there is shown only to who knows its secrets.
        let unknown = |secret: &Hash, what: &str| match sessions.is_ended.contains(secret) {
            true => ended(),
            false => unauthorized(what),
        };
        let by_key = key.map(|key| {
            let what = "no session has this key\nhint: send the key in OPENAI_API_KEY, or none with the address in OPENAI_BASE_URL";
            sessions.by_key.get(&key).copied().ok_or_else(|| unknown(&key, what))
        });
        let by_id = id.map(|id| match sessions.open.contains_key(&id) {
            true => Ok(id),
            false => Err(unknown(&id, "there is no session at this address\nhint: use the address in OPENAI_BASE_URL")),
        });
        let found = match (by_id.transpose()?, by_key.transpose()?) {
            (Some(id), Some(of_key)) if id != of_key => {
                return Err(unauthorized("the key belongs to another session than the address"));
            }
            (Some(id), _) | (None, Some(id)) => id,
            (None, None) => {
                let what = "the request has no key\nhint: send the key in OPENAI_API_KEY, or use the address in OPENAI_BASE_URL";
                return Err(unauthorized(what));
            }
        };
        sessions.open.get(&found).cloned().ok_or_else(ended)
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
