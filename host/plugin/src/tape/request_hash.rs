//! What a request is found by.

/// The hash of a request, made piece by piece: a whole request need never be in
/// memory.
pub struct RequestHash {
    import: String,
    hasher: blake3::Hasher,
}

impl RequestHash {
    /// A request of the import `import`, with nothing in it yet.
    pub fn new(import: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(import.as_bytes()).update(&[0]);
        Self { import: import.to_owned(), hasher }
    }

    /// More of the request.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The import, and the hash of it and the request.
    pub(super) fn finish(self) -> (String, blake3::Hash) {
        (self.import, self.hasher.finalize())
    }
}
