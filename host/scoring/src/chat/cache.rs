//! A cache of answers to earlier requests.

use bytes::Bytes;
use gavel_data::files::read_regular_text;
use gavel_plugin::JsonPieces;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The most bytes of an answer that are read.
pub(super) const BODY_BYTES: usize = 16 << 20;
/// The most bytes of answers that are kept in memory; then the oldest are forgotten.
const MEMORY_BYTES: usize = 64 << 20;

/// `cache` of `[chat.NAME]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheTable {
    /// The folder of the answers, which runs and processes may share; by default they are kept for the run alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Whether answers that are sampled are kept too; by default only answers with a temperature of 0.
    pub sampled: bool,
}

/// The answers of an endpoint, by the content of the request.
pub(super) struct AnswerCache {
    kept: Kept,
    sampled: bool,
    /// Requests under way, so that equal requests are sent once.
    asked: Mutex<BTreeMap<Key, Weak<tokio::sync::Mutex<()>>>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// BLAKE3 of a request's body.
pub(super) type Key = [u8; 32];

enum Kept {
    InMemory(Mutex<Memory>),
    InFolder(PathBuf),
}

#[derive(Default)]
struct Memory {
    answers: BTreeMap<Key, Bytes>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl AnswerCache {
    /// A cache as `table` asks for.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(super) fn open(table: &CacheTable) -> io::Result<Self> {
        let kept = match &table.folder {
            None => Kept::InMemory(Mutex::default()),
            Some(folder) => {
                std::fs::create_dir_all(folder)?;
                Kept::InFolder(folder.clone())
            }
        };
        let (hits, misses) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { kept, sampled: table.sampled, asked: Mutex::default(), hits, misses })
    }

    /// Whether an answer to a request with these options may be kept.
    pub(super) fn is_for(&self, options: &Map<String, Value>) -> bool {
        self.sampled || options.get("temperature").and_then(Value::as_f64) == Some(0.0)
    }

    /// The key of a request.
    pub(super) fn key(body: &JsonPieces) -> Key {
        let mut hasher = blake3::Hasher::new();
        for chunk in body.chunks() {
            hasher.update(&chunk);
        }
        *hasher.finalize().as_bytes()
    }

    /// The lock of a request while it is sent.
    pub(super) fn turn(&self, key: &Key) -> Arc<tokio::sync::Mutex<()>> {
        let mut asked = lock(&self.asked);
        asked.retain(|other, turn| other == key || turn.strong_count() > 0);
        let turn = asked.get(key).and_then(Weak::upgrade).unwrap_or_default();
        asked.insert(*key, Arc::downgrade(&turn));
        turn
    }

    /// The answer to an earlier equal request, if there is one.
    pub(super) fn get(&self, key: &Key) -> Option<Bytes> {
        let found = match &self.kept {
            Kept::InMemory(memory) => lock(memory).answers.get(key).cloned(),
            Kept::InFolder(folder) => read(&path(folder, key)),
        };
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Keeps an answer, if it is whole.
    pub(super) fn keep(&self, key: &Key, json: &str) {
        if !is_whole(json) {
            return;
        }
        match &self.kept {
            Kept::InMemory(memory) => lock(memory).keep(key, json),
            Kept::InFolder(folder) => {
                if let Err(error) = write(&path(folder, key), json) {
                    tracing::warn!("cannot keep an answer in {}: {error}", folder.display());
                }
            }
        }
    }

    /// The numbers of requests that were answered from the cache and that were not, since the last call of this.
    pub(super) fn take_counts(&self) -> (u64, u64) {
        (self.hits.swap(0, Ordering::Relaxed), self.misses.swap(0, Ordering::Relaxed))
    }
}

impl Memory {
    fn keep(&mut self, key: &Key, json: &str) {
        if self.answers.insert(*key, Bytes::copy_from_slice(json.as_bytes())).is_some() {
            return;
        }
        self.order.push_back(*key);
        self.bytes += json.len();
        while self.bytes > MEMORY_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.answers.remove(&oldest).map_or(0, |answer| answer.len());
        }
    }
}

/// The file of an answer. No folder has too many files.
fn path(folder: &Path, key: &Key) -> PathBuf {
    let hex = blake3::Hash::from_bytes(*key).to_hex();
    folder.join(&hex[..2]).join(format!("{hex}.json"))
}

/// The answer in a file, which anybody may have written. An answer that is damaged is asked for again.
fn read(path: &Path) -> Option<Bytes> {
    let json = read_regular_text(path, BODY_BYTES as u64).ok()?;
    is_whole(&json).then(|| json.into())
}

/// Writes a file that others see whole or not at all.
fn write(path: &Path, json: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(json.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

/// Whether a body has an answer that its model ended. An error of a gateway is not kept.
fn is_whole(json: &str) -> bool {
    #[derive(Deserialize)]
    struct Body {
        choices: Vec<Choice>,
    }
    #[derive(Deserialize)]
    struct Choice {
        message: Map<String, Value>,
        finish_reason: Option<String>,
    }
    let is_ended = |Choice { message, finish_reason }: &Choice| {
        !message.is_empty() && !matches!(finish_reason.as_deref(), Some("abort" | "content_filter" | "error"))
    };
    serde_json::from_str::<Body>(json).is_ok_and(|body| !body.choices.is_empty() && body.choices.iter().all(is_ended))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(text: &str, finish_reason: &str) -> String {
        json!({"choices": [{"message": {"content": text}, "finish_reason": finish_reason}]}).to_string()
    }

    #[test]
    fn only_what_repeats_is_kept_unless_asked() {
        let options = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let cache = AnswerCache::open(&CacheTable::default()).unwrap();
        assert!(cache.is_for(&options(r#"{"temperature": 0}"#)) && cache.is_for(&options(r#"{"temperature": 0.0}"#)));
        assert!(!cache.is_for(&options(r#"{"temperature": 0.5}"#)) && !cache.is_for(&Map::new()));
        let all = AnswerCache::open(&CacheTable { sampled: true, ..CacheTable::default() }).unwrap();
        assert!(all.is_for(&Map::new()));
    }

    #[test]
    fn an_answer_is_found_by_its_request() {
        let folder = tempfile::tempdir().unwrap();
        let in_folder = CacheTable { folder: Some(folder.path().into()), sampled: false };
        for table in [CacheTable::default(), in_folder.clone()] {
            let cache = AnswerCache::open(&table).unwrap();
            assert_eq!(cache.get(&[1; 32]), None);
            cache.keep(&[1; 32], &answer("a", "stop"));
            cache.keep(&[2; 32], &answer("b", "content_filter"));
            cache.keep(&[3; 32], r#"{"error": "overloaded"}"#);
            assert_eq!(cache.get(&[1; 32]).unwrap(), answer("a", "stop"));
            assert_eq!((cache.get(&[2; 32]), cache.get(&[3; 32])), (None, None));
            assert_eq!((cache.take_counts(), cache.take_counts()), ((1, 3), (0, 0)));
        }
        // Another process finds the answers in the folder.
        let other = AnswerCache::open(&in_folder).unwrap();
        assert!(other.get(&[1; 32]).is_some());
        // A file that is no whole answer is asked for again, and replaced.
        let file = path(folder.path(), &[1; 32]);
        let place_pipe = || assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        let places: [&dyn Fn(); 4] = [
            &|| std::os::unix::fs::symlink("/dev/zero", &file).unwrap(),
            &place_pipe,
            &|| std::fs::write(&file, &answer("a", "stop")[..20]).unwrap(),
            &|| std::fs::write(&file, answer(&"a".repeat(BODY_BYTES), "stop")).unwrap(),
        ];
        for place in places {
            std::fs::remove_file(&file).unwrap();
            place();
            assert_eq!(other.get(&[1; 32]), None);
            other.keep(&[1; 32], &answer("a", "stop"));
            assert_eq!(other.get(&[1; 32]).unwrap(), answer("a", "stop"));
        }
    }

    #[test]
    fn the_oldest_answers_are_forgotten() {
        let mut memory = Memory::default();
        let large = "x".repeat(MEMORY_BYTES / 2);
        for key in 0..3 {
            memory.keep(&[key; 32], &large);
        }
        assert_eq!(memory.answers.keys().map(|key| key[0]).collect::<Vec<_>>(), [1, 2]);
    }

    #[tokio::test]
    async fn the_same_request_is_asked_once_at_a_time() {
        let cache = AnswerCache::open(&CacheTable::default()).unwrap();
        let (first, other) = (cache.turn(&[1; 32]), cache.turn(&[2; 32]));
        let asked = first.lock().await;
        assert!(cache.turn(&[1; 32]).try_lock().is_err() && other.try_lock().is_ok());
        drop(asked);
        drop(first);
        cache.turn(&[3; 32]);
        assert!(!lock(&cache.asked).contains_key(&[1; 32]));
    }
}
