//! A tool with one function, `search`, which finds passages in a folder of documents.

use document_passages::{Index, Passage, read, split, write};
use gavel_sdk::{Failure, Info, Tool, ToolSpec};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Longer queries are refused: they are unlikely to be real searches.
const MAX_QUERY_CHARS: usize = 1000;
/// The most passages that a call may ask for.
const MAX_TOP_K: usize = 50;
/// The smallest passage that can hold a sentence.
const MIN_PASSAGE_CHARS: usize = 50;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// The folder of the documents, as `grant.read` names it for the tool.
    folder: String,
    /// The most characters of a passage.
    passage_chars: usize,
    /// The number of passages in an answer, unless the call sets it.
    top_k: usize,
    /// The most characters of an answer.
    answer_chars: usize,
}

impl Default for Params {
    fn default() -> Self {
        Self { folder: "/documents".into(), passage_chars: 800, top_k: 3, answer_chars: 4000 }
    }
}

impl Params {
    fn check(&self) -> Result<(), String> {
        if self.passage_chars < MIN_PASSAGE_CHARS {
            return Err(format!("`passage_chars` must be {MIN_PASSAGE_CHARS} or more, not {}", self.passage_chars));
        }
        if !(1..=MAX_TOP_K).contains(&self.top_k) {
            return Err(format!("`top_k` must be from 1 to {MAX_TOP_K}, not {}", self.top_k));
        }
        if self.answer_chars < self.passage_chars {
            let (answer, passage) = (self.answer_chars, self.passage_chars);
            return Err(format!("`answer_chars` is {answer}, and a passage may have {passage} characters"));
        }
        Ok(())
    }
}

struct Search {
    params: Params,
    passages: Vec<Passage>,
    index: Index,
}

impl Tool for Search {
    type Params = Params;
    type State = ();

    fn new(params: Params) -> Result<Self, String> {
        params.check()?;
        let documents = read(Path::new(&params.folder))?;
        let passages = split(documents, params.passage_chars);
        let index = Index::new(&passages);
        Ok(Self { params, passages, index })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn specs(&self) -> Vec<ToolSpec> {
        let query = json!({"type": "string", "description": "Words that the passage should have"});
        let top_k = json!({
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TOP_K,
            "description": format!("How many passages to return; {} by default", self.params.top_k),
        });
        let schema = json!({
            "type": "object",
            "properties": {"query": query, "top_k": top_k},
            "required": ["query"],
            "additionalProperties": false,
        });
        let description = "Searches documents and returns the passages that fit the query best.";
        vec![ToolSpec::new("search", description, schema)]
    }

    fn open(&self, _: Map<String, Value>) -> Result<(), Failure> {
        Ok(())
    }

    fn call(&self, (): &mut (), _: &str, arguments: Map<String, Value>) -> Result<String, Failure> {
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let top_k = arguments.get("top_k").and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
        self.search(query, top_k.unwrap_or(self.params.top_k)).map_err(Failure::invalid_input)
    }
}

gavel_sdk::export_tool!(Search);

impl Search {
    /// The passages that fit `query` best as text, or what is wrong with the query.
    fn search(&self, query: &str, top_k: usize) -> Result<String, String> {
        let chars = query.chars().count();
        if chars > MAX_QUERY_CHARS {
            return Err(format!("the query has {chars} characters, at most {MAX_QUERY_CHARS} are allowed"));
        }
        let found = self.index.find(query, top_k).ok_or("the query has no words")?;
        Ok(write(found.iter().map(|place| &self.passages[*place]), self.params.answer_chars))
    }
}
