//! The hash by which a request is found.

/// The hash of a request, computed in pieces, so that a whole request need not be
/// in memory.
pub struct RequestHash {
    import: String,
    hasher: blake3::Hasher,
}

impl RequestHash {
    /// The hash of an empty request of the import `import`.
    pub fn new(import: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(import.as_bytes()).update(&[0]);
        Self { import: import.to_owned(), hasher }
    }

    /// Adds bytes of the request.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The import, and the hash of it and the request.
    pub(super) fn finish(self) -> (String, blake3::Hash) {
        (self.import, self.hasher.finalize())
    }
}
