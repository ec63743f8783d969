//! Tables whose keys are names that Gavel knows.

use serde::de::value::{Error, StrDeserializer};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use std::collections::BTreeMap;

/// Reads a table. A key that is not a name of `K` is an error like an unknown field, so that a configuration can report
/// its place.
///
/// # Errors
/// A key or a value is wrong.
pub fn named_keys<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: DeserializeOwned + Ord,
    V: Deserialize<'de>,
{
    let table = BTreeMap::<String, V>::deserialize(deserializer)?;
    let known = |name: &str| {
        let key: Result<K, Error> = K::deserialize(StrDeserializer::new(name));
        key.map_err(|error| D::Error::custom(error.to_string().replacen("unknown variant", "unknown field", 1)))
    };
    table.into_iter().map(|(name, value)| Ok((known(&name)?, value))).collect()
}
