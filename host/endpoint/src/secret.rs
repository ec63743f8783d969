//! Keys, which nothing that a server answers may show: servers repeat what they received, in errors above all.

/// Shorter keys are not looked for: they may be a part of other texts.
const LEAST_BYTES: usize = 6;

/// The bytes with `shown` in place of each `secret`.
pub fn without_secret(bytes: Vec<u8>, secret: &[u8], shown: &str) -> Vec<u8> {
    if secret.len() < LEAST_BYTES {
        return bytes;
    }
    let (mut clean, mut rest) = (Vec::new(), bytes.as_slice());
    while let Some(at) = rest.windows(secret.len()).position(|part| part == secret) {
        clean.extend_from_slice(&rest[..at]);
        clean.extend_from_slice(shown.as_bytes());
        rest = &rest[at + secret.len()..];
    }
    if rest.len() == bytes.len() {
        return bytes;
    }
    clean.extend_from_slice(rest);
    clean
}
