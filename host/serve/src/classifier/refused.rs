//! Requests that would cost much are refused before the model computes anything for them.

use super::pairs::pairs;
use super::router;
use crate::openai::refused::post;
use gavel_policy::{Device, Model};
use gavel_rollout::{Reading, RewardModel, RewardModelConfig};
use gavel_text::TextModel;
use serde_json::{Value, json};
use std::sync::Arc;

/// A model of one label and 64 positions.
fn model() -> RewardModel {
    let sizes = json!({"architectures": ["Qwen2ForSequenceClassification"], "num_labels": 1, "vocab_size": 259,
                       "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                       "max_position_embeddings": 64});
    let model = Model::random(serde_json::from_value(sizes).unwrap(), 3, Device::Cpu).unwrap();
    let config = RewardModelConfig { reading: Reading::Labels, ..RewardModelConfig::default() };
    RewardModel::start(model, TextModel::byte_level(), config, Arc::default()).unwrap()
}

fn texts(count: usize) -> Value {
    vec!["a"; count].into()
}

#[tokio::test]
async fn too_many_texts_and_copies_are_refused_before_anything_is_computed() {
    let model = model();
    let router = router(model.clone(), "a", vec!["good".to_owned()]);
    let many = "a request may have 4096 texts, not 4097";
    let query = "q".repeat(16_385);
    let copies = "a query of 16385 bytes is too long to be paired with 4096 texts";
    for (path, body, says) in [
        ("/classify", json!({"input": texts(4097)}), many),
        ("/v1/embeddings", json!({"input": texts(4097)}), many),
        ("/predict", json!({"inputs": vec![["a"]; 4097]}), many),
        ("/score", json!({"text_1": "q", "text_2": texts(4097)}), many),
        ("/score", json!({"text_1": texts(4097), "text_2": texts(4097)}), many),
        ("/rerank", json!({"query": "q", "documents": texts(4097)}), many),
        ("/rerank", json!({"query": "q", "texts": texts(4097)}), many),
        ("/score", json!({"text_1": query, "text_2": texts(4096)}), copies),
        ("/rerank", json!({"query": query, "documents": texts(4096)}), copies),
        ("/rerank", json!({"query": query, "texts": texts(4096)}), copies),
    ] {
        let (status, answer) = post(&router, path, body).await;
        assert_eq!((status, &answer["error"]["message"]), (400, &says.into()), "{path}");
    }
    let (status, _) = post(&router, "/classify", json!({"input": "a".repeat(64 << 20)})).await;
    assert_eq!(status, 413);
    assert_eq!(model.usage(), Default::default());

    // As many as may be.
    let (status, answer) = post(&router, "/v1/embeddings", json!({"input": texts(4096)})).await;
    assert_eq!((status, answer["data"].as_array().unwrap().len()), (200, 4096));
    assert_eq!(model.usage().scored, 1);
    assert!(pairs(&query[1..], &vec!["a".to_owned(); 4096]).is_ok());
}
