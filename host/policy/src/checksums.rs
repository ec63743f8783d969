//! Checksums of a model's weights, by which two processes find out whether they have the same.

use crate::error::Result;
use crate::model::Model;
use crate::tensor_file::read_bytes;
use std::collections::BTreeMap;

impl Model {
    /// The BLAKE3 hash of each weight's values, by its name in a checkpoint, in the dtype of the model. Adapters are not
    /// part of it.
    pub fn checksums(&self) -> Result<BTreeMap<String, String>> {
        let of = |(name, tensor)| Ok((name, read_bytes(&tensor, |bytes| blake3::hash(bytes).to_string())?));
        self.named_weights()?.into_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Device;

    #[test]
    fn a_weight_that_changes_changes_its_checksum_alone() {
        let sizes =
            r#"{"vocab_size":16,"hidden_size":8,"intermediate_size":8,"num_hidden_layers":2,"num_attention_heads":2}"#;
        let config: crate::ModelConfig = serde_json::from_str(sizes).unwrap();
        let [model, other] = [3, 3].map(|seed| Model::random(config.clone(), seed, Device::Cpu).unwrap());
        let before = model.checksums().unwrap();
        assert_eq!(before, other.checksums().unwrap());
        let changed = "model.layers.1.self_attn.k_proj.weight";
        let (_, weight) = model.named_weights().unwrap().into_iter().find(|(name, _)| name == changed).unwrap();
        let _ = weight.get(0).get(0).fill_(0.125);
        let after = model.checksums().unwrap();
        let differ: Vec<_> =
            before.iter().filter(|(name, hash)| after[*name] != **hash).map(|(name, _)| name.as_str()).collect();
        assert_eq!((differ, before.len()), (vec![changed], after.len()));
    }
}
