use super::*;
use serde_json::{Value, json};

const QWEN: &str = r#"{"architectures":["Qwen2ForCausalLM"],"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":[7,9],
    "hidden_act":"silu","hidden_size":896,"initializer_range":0.02,"intermediate_size":4864,"max_position_embeddings":32768,
    "model_type":"qwen2","num_attention_heads":14,"num_hidden_layers":24,"num_key_value_heads":2,"rms_norm_eps":1e-06,
    "rope_theta":1000000.0,"sliding_window":32768,"tie_word_embeddings":true,"torch_dtype":"bfloat16","use_sliding_window":false,"vocab_size":151936}"#;

const LLAMA_3_2_1B: &str = r#"{"architectures":["LlamaForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":128000,
    "eos_token_id":128001,"head_dim":64,"hidden_act":"silu","hidden_size":2048,"initializer_range":0.02,"intermediate_size":8192,
    "max_position_embeddings":131072,"mlp_bias":false,"model_type":"llama","num_attention_heads":32,"num_hidden_layers":16,
    "num_key_value_heads":8,"pretraining_tp":1,"rms_norm_eps":1e-05,"rope_scaling":{"factor":32.0,"high_freq_factor":4.0,
    "low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},"rope_theta":500000.0,
    "tie_word_embeddings":true,"torch_dtype":"bfloat16","use_cache":true,"vocab_size":128256}"#;

const MISTRAL_7B: &str = r#"{"architectures":["MistralForCausalLM"],"bos_token_id":1,"eos_token_id":2,"hidden_act":"silu",
    "hidden_size":4096,"initializer_range":0.02,"intermediate_size":14336,"max_position_embeddings":32768,"model_type":"mistral",
    "num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_theta":10000.0,
    "sliding_window":4096,"tie_word_embeddings":false,"torch_dtype":"bfloat16","use_cache":true,"vocab_size":32000}"#;

const QWEN_2_5_7B: &str = r#"{"architectures":["Qwen2ForCausalLM"],"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":151645,
    "hidden_act":"silu","hidden_size":3584,"initializer_range":0.02,"intermediate_size":18944,"max_position_embeddings":32768,
    "max_window_layers":28,"model_type":"qwen2","num_attention_heads":28,"num_hidden_layers":28,"num_key_value_heads":4,
    "rms_norm_eps":1e-06,"rope_theta":1000000.0,"sliding_window":131072,"tie_word_embeddings":false,"torch_dtype":"bfloat16",
    "use_cache":true,"use_sliding_window":false,"vocab_size":152064}"#;

const QWEN_3_0_6B: &str = r#"{"architectures":["Qwen3ForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":151643,
    "eos_token_id":151645,"head_dim":128,"hidden_act":"silu","hidden_size":1024,"initializer_range":0.02,"intermediate_size":3072,
    "max_position_embeddings":40960,"max_window_layers":28,"model_type":"qwen3","num_attention_heads":16,"num_hidden_layers":28,
    "num_key_value_heads":8,"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":1000000,"sliding_window":null,
    "tie_word_embeddings":true,"torch_dtype":"bfloat16","use_cache":true,"use_sliding_window":false,"vocab_size":151936}"#;

fn with(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> std::result::Result<ModelConfig, String> {
    let mut json: serde_json::Map<String, Value> = serde_json::from_str(QWEN).unwrap();
    change(&mut json);
    serde_json::from_value(Value::Object(json)).map_err(|error| error.to_string())
}

#[test]
fn both_generations_of_rotary_settings_are_read() {
    let four = with(|_| ()).unwrap();
    assert_eq!((four.head_dim, four.rope_theta, four.eos_token_id.as_slice()), (64, 1e6, &[7, 9][..]));
    let five = with(|json| {
        json.remove("rope_theta");
        json.insert("rope_parameters".into(), json!({"rope_theta": 1e6, "rope_type": "default"}));
    });
    assert_eq!(five.unwrap(), four);
    let both = with(|json| {
        let scaling = json!({"rope_type": "linear", "type": "linear", "factor": 2.0});
        json.insert("rope_scaling".into(), scaling);
    });
    assert_eq!(both.unwrap().rope_scaling, Some(RopeScaling::Linear { factor: 2.0 }));
    assert_eq!(four.positions(), 32_768);
    // As the model cards of Qwen2.5 have it: the file's positions are those before the change.
    let scaling = json!({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768});
    let longer = with(|json| _ = json.insert("rope_scaling".into(), scaling));
    assert_eq!(longer.unwrap().positions(), 131_072);
    // The same, added to a file that transformers 5 saved.
    let added = |scaling: Value| {
        with(|json| {
            json.remove("rope_theta");
            json.insert("rope_parameters".into(), json!({"rope_theta": 1e6, "rope_type": "default"}));
            json.insert("rope_scaling".into(), scaling);
        })
        .unwrap()
    };
    let yarn = json!({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768});
    let longer = added(yarn);
    assert!(matches!(longer.rope_scaling, Some(RopeScaling::Yarn { factor: 4.0, original: 32_768.0, .. })));
    assert_eq!((longer.rope_theta, longer.positions()), (1e6, 131_072));
    assert_eq!(added(json!({"type": "linear", "factor": 2.0, "rope_theta": 5e5})).rope_theta, 5e5);
    assert_eq!((added(json!({})), added(Value::Null)), (four.clone(), four.clone()));
    let again: ModelConfig = serde_json::from_str(&serde_json::to_string(&four).unwrap()).unwrap();
    assert_eq!(again, four);
}

#[test]
fn published_files_say_what_their_models_compute() {
    let read = |text: &str| -> ModelConfig { serde_json::from_str(text).unwrap() };
    let kinds = |config: &ModelConfig| (config.architecture.has_qkv_bias(), config.architecture.has_qk_norm());

    let llama = read(LLAMA_3_2_1B);
    assert_eq!((llama.architecture, kinds(&llama)), (Architecture::Llama, (false, false)));
    assert_eq!((llama.head_dim, llama.query_width(), llama.kv_width()), (64, 2048, 512));
    let scaling = RopeScaling::Llama3 { factor: 32.0, low: 1.0, high: 4.0, original: 8192.0 };
    assert_eq!((llama.rope_theta, llama.rope_scaling), (500_000.0, Some(scaling)));
    assert_eq!((llama.positions(), llama.window_size(), llama.tie_word_embeddings), (131_072, None, true));

    let mistral = read(MISTRAL_7B);
    assert_eq!((mistral.architecture, kinds(&mistral)), (Architecture::Mistral, (false, false)));
    assert_eq!((mistral.head_dim, mistral.query_width(), mistral.kv_width()), (128, 4096, 1024));
    assert_eq!((mistral.rope_theta, mistral.rope_scaling), (10_000.0, None));
    assert_eq!(mistral.windows, [Some(4096); 32]);
    assert_eq!((mistral.positions(), mistral.tie_word_embeddings), (32_768, false));

    let qwen2 = read(QWEN_2_5_7B);
    assert_eq!((qwen2.architecture, kinds(&qwen2)), (Architecture::Qwen2, (true, false)));
    assert_eq!((qwen2.head_dim, qwen2.query_width(), qwen2.kv_width()), (128, 3584, 512));
    assert_eq!((qwen2.rope_theta, qwen2.rope_scaling), (1e6, None));
    assert_eq!((qwen2.positions(), qwen2.window_size(), qwen2.tie_word_embeddings), (32_768, None, false));

    let qwen3 = read(QWEN_3_0_6B);
    assert_eq!((qwen3.architecture, kinds(&qwen3)), (Architecture::Qwen3, (false, true)));
    assert_eq!((qwen3.head_dim, qwen3.query_width(), qwen3.kv_width()), (128, 2048, 1024));
    assert_eq!((qwen3.rope_theta, qwen3.rope_scaling), (1e6, None));
    assert_eq!((qwen3.positions(), qwen3.window_size(), qwen3.tie_word_embeddings), (40_960, None, true));
}

#[test]
fn labels_are_counted_where_they_have_no_names() {
    let labels = |changes: Value| {
        let classifier = with(|json| {
            json.insert("architectures".into(), json!(["Qwen2ForSequenceClassification"]));
            json.extend(changes.as_object().unwrap().clone());
        });
        classifier.unwrap().head.labels()
    };
    assert_eq!(labels(json!({})), Some(2));
    assert_eq!(labels(json!({"num_labels": 1})), Some(1));
    assert_eq!(labels(json!({"num_labels": 1, "id2label": {"0": "a", "1": "b", "2": "c"}})), Some(3));
}

#[test]
fn what_is_no_token_is_left_out() {
    let config = with(|json| {
        for (key, id) in [("bos_token_id", json!(-1)), ("pad_token_id", json!(-1)), ("eos_token_id", json!([-1, 7]))] {
            json.insert(key.into(), id);
        }
    });
    let config = config.unwrap();
    assert_eq!((config.bos_token_id, config.eos_token_id, config.pad_token_id), (None, vec![7], None));
    assert!(with(|json| _ = json.insert("eos_token_id".into(), json!(-1))).unwrap().eos_token_id.is_empty());
}

#[test]
fn sizes_for_gavel_have_no_unknown_keys() {
    let read = |json: Value| ModelConfig::deserialize_known(json).map_err(|error| error.to_string());
    let mut json: serde_json::Map<String, Value> = serde_json::from_str(QWEN).unwrap();
    assert_eq!(read(Value::Object(json.clone())).unwrap_err(), "unknown field `attention_dropout`");
    json.remove("attention_dropout");
    json.insert("dtype".into(), "float32".into());
    let config = read(Value::Object(json)).unwrap();
    assert_eq!(config, with(|_| ()).unwrap());
    // What is written is known.
    let window = [Some(8)].into_iter().chain([None; 23]).collect();
    let scaled = ModelConfig { rope_scaling: Some(RopeScaling::Linear { factor: 2.0 }), ..config.clone() };
    let classifier = ModelConfig { head: Head::Scores { labels: 3 }, windows: window, ..config.clone() };
    for config in [config, scaled, classifier] {
        assert_eq!(read(serde_json::to_value(&config).unwrap()).unwrap(), config);
    }
}

#[test]
fn what_asks_for_nothing_is_no_mistake() {
    let plain = with(|_| ()).unwrap();
    for value in [Value::Null, json!(false), json!({}), json!([])] {
        for key in ["mlp_bias", "use_bidirectional_attention", "per_layer_config", "final_logit_softcapping"] {
            assert_eq!(with(|json| _ = json.insert(key.into(), value.clone())).unwrap(), plain, "{key}: {value}");
        }
    }
    for (key, value) in [
        ("logits_scaling", json!(1)),
        ("partial_rotary_factor", json!(1.0)),
        ("is_causal", json!(true)),
        ("layer_types", json!(vec!["full_attention"; 24])),
        // As the language models in Qwen2-VL have it: for text, the sections are all alike.
        ("rope_parameters", json!({"rope_type": "default", "rope_theta": 1e6, "mrope_section": [8, 12, 12]})),
        ("original_max_position_embeddings", json!(64)),
    ] {
        assert_eq!(with(|json| _ = json.insert(key.into(), value.clone())).unwrap(), plain, "{key}: {value}");
    }
}

#[test]
fn the_positions_before_a_change_may_stand_outside_the_rotary_settings() {
    let original = |outside: Value, inside: Value| {
        let mut table = json!({"rope_type": "yarn", "factor": 4.0});
        table.as_object_mut().unwrap().extend(inside.as_object().unwrap().clone());
        let config = with(|json| {
            json.insert("original_max_position_embeddings".into(), outside);
            json.insert("rope_parameters".into(), table);
        });
        let Some(RopeScaling::Yarn { original, .. }) = config.unwrap().rope_scaling else { panic!("no YaRN") };
        original
    };
    let inside = || json!({"original_max_position_embeddings": 512});
    assert_eq!(original(Value::Null, json!({})), 32_768.0);
    assert_eq!(original(Value::Null, inside()), 512.0);
    // As in transformers, it goes before the key inside.
    assert_eq!((original(json!(64), json!({})), original(json!(64), inside())), (64.0, 64.0));
    let bands = json!({"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0});
    let llama3 = with(|json| _ = json.insert("rope_parameters".into(), bands)).unwrap();
    let expected = RopeScaling::Llama3 { factor: 4.0, low: 1.0, high: 4.0, original: 32_768.0 };
    assert_eq!(llama3.rope_scaling, Some(expected));
}

#[test]
fn the_layers_of_mistral_may_have_their_own_windows() {
    let mistral = |changes: Value| {
        let mut json: serde_json::Map<String, Value> = serde_json::from_str(MISTRAL_7B).unwrap();
        json.extend(changes.as_object().unwrap().clone());
        serde_json::from_value::<ModelConfig>(Value::Object(json)).map_err(|error| error.to_string())
    };
    let kinds: Vec<_> = ["full_attention", "sliding_attention"].into_iter().cycle().take(32).collect();
    let config = mistral(json!({"layer_types": kinds, "sliding_window": 8})).unwrap();
    assert_eq!((&config.windows[..3], config.windows.len()), (&[None, Some(8), None][..], 32));
    let written = serde_json::to_value(&config).unwrap();
    assert_eq!((&written["layer_types"], &written["sliding_window"]), (&json!(kinds), &json!(8)));
    assert_eq!(serde_json::from_value::<ModelConfig>(written).unwrap(), config);
    assert_eq!(mistral(json!({"layer_types": null})).unwrap().windows, [Some(4096); 32]);
    let nowhere = "model configuration: `layer_types` has \"sliding_attention\", and no window is set";
    assert_eq!(mistral(json!({"layer_types": kinds, "sliding_window": null})).unwrap_err(), nowhere);
    // Where transformers leaves the list aside, other libraries do not.
    for (kind, more) in [("qwen2", json!({"use_sliding_window": false})), ("llama", json!({})), ("gemma", json!({}))] {
        let mut changes = json!({"model_type": kind, "architectures": null, "layer_types": kinds, "sliding_window": 8});
        changes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        changes["hidden_act"] = Value::Null;
        assert_eq!(mistral(changes).unwrap_err(), nowhere, "{kind}");
    }
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    for (key, value, says) in [
        ("model_type", json!("phi3"), "(model_type \"phi3\") is not supported; ForCausalLM, "),
        ("model_type", json!("llama"), "\"Qwen2ForCausalLM\" (model_type \"llama\")"),
        ("architectures", json!(["Qwen2Model"]), "architecture \"Qwen2Model\""),
        ("hidden_act", json!("gelu"), "`hidden_act` \"gelu\""),
        ("mlp_bias", json!(true), "`mlp_bias` is not supported"),
        ("use_bidirectional_attention", json!(true), "`use_bidirectional_attention` is not supported"),
        ("per_layer_config", json!({"0": {"head_dim": 32}}), "`per_layer_config` is not supported"),
        ("hidden_activation", json!("relu"), "`hidden_act` \"relu\" is not supported"),
        ("logits_scaling", json!(3.0), "`logits_scaling` 3.0 is not supported; only 1 is"),
        ("final_logit_softcapping", json!(30.0), "`final_logit_softcapping` is not supported; only without it"),
        ("partial_rotary_factor", json!(0.5), "`partial_rotary_factor` 0.5 is not supported; only 1 is"),
        ("is_causal", json!(false), "`is_causal` false is not supported; only true is"),
        ("quantization_config", json!({"quant_method": "fp8"}), "`quantization_config` is not supported"),
        (
            "rope_parameters",
            json!({"full_attention": {"rope_type": "default"}}),
            "`full_attention` of the rotary embedding is not supported",
        ),
        (
            "rope_scaling",
            json!({"type": "yarn", "factor": 2.0, "attn_factor": 0.5}),
            "`attn_factor` of the rotary embedding is not supported",
        ),
        ("sliding_window", json!(0), "`sliding_window` must be from 1"),
        ("layer_types", json!(["full_attention"]), "`layer_types` has 1 layers"),
        ("rope_scaling", json!({"type": "dynamic", "factor": 4.0}), "type \"dynamic\""),
        ("rope_scaling", json!({"rope_type": "llama3", "factor": 4.0}), "needs `low_freq_factor`"),
        ("num_attention_heads", json!(15), "`hidden_size` 896"),
        ("num_key_value_heads", json!(3), "multiple of `num_key_value_heads` 3"),
        ("num_hidden_layers", json!(0), "`num_hidden_layers` must be from 1 to 1000, not 0"),
        ("num_hidden_layers", json!(1_000_000_000), "`num_hidden_layers` must be from 1 to 1000, not 1000000000"),
        ("num_hidden_layers", json!(-1), "`num_hidden_layers` must be from 1 to 1000, not -1"),
        ("intermediate_size", json!(i64::MAX), "`intermediate_size` must be from 1 to 4194304"),
        ("vocab_size", json!(-151_936), "`vocab_size` must be from 1 to 4194304, not -151936"),
        ("head_dim", json!(4_000_000), "`num_attention_heads` 14 times `head_dim` 4000000 must be at most"),
        ("rope_scaling", json!({"type": "yarn", "factor": 1e300}), "`factor` times `original_max_position_embeddings`"),
        ("head_dim", json!(127), "`head_dim` must be even"),
    ] {
        let change = |json: &mut serde_json::Map<String, Value>| {
            json.insert("use_sliding_window".into(), (key == "sliding_window" || key == "layer_types").into());
            json.insert("max_window_layers".into(), 0.into());
            json.insert(key.into(), value);
        };
        let error = with(change).unwrap_err();
        assert!(error.contains(says), "{key}: {error}");
    }
}
