//! Tokenizers and chat templates, from and to the files of a checkpoint.

use gavel_data::{ContentPart, Media, Message, Role, ToolCall};
use gavel_text::{ChatTemplate, RenderOptions, TextModel, Tokenizer};
use std::path::Path;

fn conversation() -> Vec<Message> {
    vec![
        Message::new(Role::System, "Be brief."),
        Message::new(Role::User, "Order: 7 3"),
        Message::new(Role::Assistant, "3 7"),
    ]
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
}

#[test]
fn bytes_are_tokens_and_come_back() {
    let tokenizer = Tokenizer::byte_level();
    assert_eq!((tokenizer.vocab_size(), tokenizer.pad(), tokenizer.eos(), tokenizer.stop_ids()), (259, 0, 2, &[2][..]));
    assert_eq!(tokenizer.encode("A\n é").unwrap(), [3 + 65, 3 + 10, 3 + 32, 3 + 0xc3, 3 + 0xa9]);
    let every_char_width = "tab\t, zero\0, \u{7f}\u{80}\u{a0}\u{ad}ÿ, naïve, 数学, 🦀, e\u{301}, <|pad, \r\n ";
    let ids = tokenizer.encode(every_char_width).unwrap();
    assert_eq!(ids, every_char_width.bytes().map(|byte| 3 + u32::from(byte)).collect::<Vec<_>>());
    assert_eq!(tokenizer.decode(&ids).unwrap(), every_char_width);
    assert!(tokenizer.encode("").unwrap().is_empty());
}

#[test]
fn special_tokens_are_recognised_and_not_decoded() {
    let tokenizer = Tokenizer::byte_level();
    let ids = tokenizer.encode("<|im_start|>a<|im_end|><|pad|>").unwrap();
    assert_eq!(ids, [1, 3 + 97, 2, 0]);
    assert_eq!(tokenizer.decode(&ids).unwrap(), "a");
    assert_eq!(tokenizer.decode(&[3 + 0xc3]).unwrap(), "\u{fffd}");
}

#[test]
fn chatml_renders_exactly() {
    let text = TextModel::byte_level();
    let expected = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nOrder: 7 3<|im_end|>\n<|im_start|>assistant\n3 7<|im_end|>\n";
    assert_eq!(text.template.render(&conversation(), &RenderOptions::default()).unwrap(), expected);
    assert_eq!(
        text.template.render(&conversation(), &RenderOptions::prompt(&[])).unwrap(),
        format!("{expected}<|im_start|>assistant\n")
    );
    let ids = text.prompt_ids(&conversation()[1..2]).unwrap();
    assert_eq!((ids[0], ids[ids.len() - 1]), (1, 3 + 10));
    assert_eq!(text.tokenizer.decode(&ids).unwrap(), "user\nOrder: 7 3\nassistant\n");
}

#[test]
fn a_saved_model_loads_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (text, nested) = (TextModel::byte_level(), dir.path().join("a/b"));
    text.save(&nested).unwrap();
    let loaded = TextModel::load(&nested).unwrap();
    assert_eq!(loaded.prompt_ids(&conversation()).unwrap(), text.prompt_ids(&conversation()).unwrap());
    assert_eq!(loaded.template.source(), text.template.source());
    let facts = |t: &Tokenizer| (t.vocab_size(), t.pad(), t.stop_ids().to_vec());
    assert_eq!(facts(&loaded.tokenizer), facts(&text.tokenizer));
    let again = dir.path().join("again");
    loaded.save(&again).unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
        assert_eq!(std::fs::read(nested.join(name)).unwrap(), std::fs::read(again.join(name)).unwrap(), "{name}");
    }
}

#[test]
fn special_tokens_in_a_file_of_their_own_are_kept() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Tokenizer::byte_level().save(dir.path()).unwrap();
    std::fs::remove_file(dir.path().join("generation_config.json")).unwrap();
    write(dir.path(), "tokenizer_config.json", r#"{"bos_token": null}"#);
    write(
        dir.path(),
        "special_tokens_map.json",
        r#"{"bos_token": {"content": "<|im_start|>"}, "eos_token": "<|im_end|>", "pad_token": "<|pad|>"}"#,
    );
    // A byte-order mark before it is not part of the prompt.
    write(dir.path(), "chat_template.jinja", "\u{feff}{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
    let facts = |dir: &Path| {
        let text = TextModel::load(dir).unwrap();
        let ids = text.prompt_ids(&[Message::new(Role::User, "a")]).unwrap();
        (ids, text.tokenizer.stop_ids().to_vec(), text.tokenizer.pad())
    };
    TextModel::load(dir.path()).unwrap().save(copy.path()).unwrap();
    assert_eq!(facts(dir.path()), (vec![1, 3 + 97, 2], vec![2], 0));
    assert_eq!(facts(copy.path()), facts(dir.path()));
    write(dir.path(), "special_tokens_map.json", r#"{"eos_token": "</s>"}"#);
    let error = TextModel::load(dir.path()).err().unwrap().to_string();
    assert!(error.contains("special_tokens_map.json: `eos_token` \"</s>\" is not a token of"), "{error}");
}

#[test]
fn every_token_that_ends_a_response_is_found() {
    let dir = tempfile::tempdir().unwrap();
    Tokenizer::byte_level().save(dir.path()).unwrap();
    let load = || Tokenizer::load(dir.path()).map(|tokenizer| (tokenizer.stop_ids().to_vec(), tokenizer.pad()));
    write(dir.path(), "generation_config.json", r#"{"eos_token_id": [1, 2], "pad_token_id": 1}"#);
    assert_eq!(load().unwrap(), (vec![2, 1], 0));
    write(dir.path(), "tokenizer_config.json", r#"{"eos_token": {"content": "<|im_start|>"}}"#);
    assert_eq!(load().unwrap(), (vec![1, 2], 1));
    write(dir.path(), "tokenizer_config.json", "{}");
    write(dir.path(), "generation_config.json", "{}");
    write(dir.path(), "config.json", r#"{"eos_token_id": 2}"#);
    assert_eq!(load().unwrap(), (vec![2], 2));
    write(dir.path(), "config.json", "{}");
    assert!(load().unwrap_err().to_string().contains("no token ends a text\nhint: set `eos_token`"));
    write(dir.path(), "tokenizer_config.json", r#"{"eos_token": "</s>"}"#);
    assert!(load().unwrap_err().to_string().contains("`eos_token` \"</s>\" is not a token of"));
}

#[test]
fn an_adapter_ends_its_texts_as_its_base_does() {
    let (dir, base) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    TextModel::byte_level().save(dir.path()).unwrap();
    write(base.path(), "generation_config.json", r#"{"eos_token_id": [2, 9]}"#);
    let stop_ids = || TextModel::load_with(dir.path(), base.path()).unwrap().tokenizer.stop_ids().to_vec();
    assert_eq!(stop_ids(), [2]);
    std::fs::remove_file(dir.path().join("generation_config.json")).unwrap();
    assert_eq!(stop_ids(), [2, 9]);
}

#[test]
fn an_adapter_without_a_template_has_that_of_its_base() {
    let (base, adapter) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&base, &adapter] {
        TextModel::byte_level().save(folder.path()).unwrap();
    }
    write(adapter.path(), "tokenizer_config.json", r#"{"eos_token": "<|im_end|>"}"#);
    write(base.path(), "chat_template.jinja", "{{ messages[0].content }} of the base");
    let text = TextModel::load_with(adapter.path(), base.path()).unwrap();
    let ids = text.prompt_ids(&[Message::new(Role::User, "that")]).unwrap();
    assert_eq!(text.tokenizer.decode(&ids).unwrap(), "that of the base");
}

#[test]
fn a_model_without_a_template_reads_texts_and_no_conversations() {
    let dir = tempfile::tempdir().unwrap();
    Tokenizer::byte_level().save(dir.path()).unwrap();
    let text = TextModel::load(dir.path()).unwrap();
    assert_eq!(text.tokenizer.encode("a").unwrap().len(), 1);
    let error = text.prompt_ids(&conversation()).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "{}: there is no chat template\nhint: add chat_template.jinja, or `chat_template` to tokenizer_config.json",
            dir.path().display()
        )
    );
    // It is saved without a template too.
    let copy = tempfile::tempdir().unwrap();
    text.save(copy.path()).unwrap();
    assert!(TextModel::load(copy.path()).unwrap().template.source().is_none());
}

#[test]
fn what_the_makers_say_of_drawing_is_kept() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    TextModel::byte_level().save(dir.path()).unwrap();
    write(dir.path(), "generation_config.json", r#"{"eos_token_id": [2, 5], "temperature": 0.7, "do_sample": true}"#);
    TextModel::load(dir.path()).unwrap().save(copy.path()).unwrap();
    let saved = std::fs::read_to_string(copy.path().join("generation_config.json")).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(
        saved,
        serde_json::json!({"eos_token_id": [2, 5], "pad_token_id": 0, "temperature": 0.7, "do_sample": true})
    );
}

#[test]
fn broken_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let says = |what: &str| {
        let error = TextModel::load(dir.path()).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    };
    says("cannot read ");
    write(dir.path(), "tokenizer.json", "{}");
    says("tokenizer.json: not a tokenizer");
    Tokenizer::byte_level().save(dir.path()).unwrap();
    write(dir.path(), "chat_template.jinja", "{% if %}");
    says("chat_template.jinja: the chat template has an error");
    write(dir.path(), "tokenizer_config.json", "[]");
    says("tokenizer_config.json: not a JSON object");
}

/// A template with this source, in a folder with `tokenizer_config.json`.
fn template(source: &str) -> ChatTemplate {
    let dir = tempfile::tempdir().unwrap();
    let settings = serde_json::json!({
        "bos_token": {"content": "<s>"}, "eos_token": "</s>",
        "chat_template": [{"name": "tool_use", "template": "no"}, {"name": "default", "template": source}],
    });
    write(dir.path(), "tokenizer_config.json", &settings.to_string());
    ChatTemplate::load(dir.path()).unwrap()
}

#[test]
fn templates_run_as_transformers_runs_them() {
    let render =
        |source: &str, messages: &[Message]| template(source).render(messages, &RenderOptions::default()).unwrap();
    // Blocks remove the white space before them on their line and the line break after them.
    let source = "{{ bos_token }}\n  {% for m in messages %}\n[{{ m.role }}] {{ m['content'].strip() | upper }}{{ eos_token }}\n  {% endfor %}\nend\n";
    assert_eq!(
        render(source, &[Message::new(Role::User, " hi "), Message::new(Role::Assistant, "yo")]),
        "<s>\n[user] HI</s>\n[assistant] YO</s>\nend"
    );
    // Python's methods, namespaces, loop controls and slices are there.
    let source = "{% set ns = namespace(n=0) %}{% for m in messages[::-1] %}{% if m.role == 'system' %}{% break %}{% endif %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }} {{ messages[0].content.split(' ')[-1] }}{% if messages[1].get('tool_calls') is none %} none{% endif %}";
    assert_eq!(render(source, &conversation()), "2 brief. none");
}

#[test]
fn tool_calls_and_media_reach_the_template() {
    let mut call = Message::new(Role::Assistant, "");
    call.content.clear();
    call.tool_calls =
        vec![ToolCall { id: "c1".into(), name: "add".into(), arguments: r#"{"b":[1,2.0],"a":"<é>"}"#.into() }];
    let source = "{{ messages[0].tool_calls[0].function.arguments | tojson }}|{{ messages[0].content }}|{{ messages[0].tool_calls[0].function | tojson(indent=2) }}";
    assert_eq!(
        template(source).render(&[call], &RenderOptions::default()).unwrap(),
        "{\"b\": [1, 2.0], \"a\": \"<é>\"}||{\n  \"name\": \"add\",\n  \"arguments\": {\n    \"b\": [\n      1,\n      2.0\n    ],\n    \"a\": \"<é>\"\n  }\n}"
    );
    let mut seen = Message::new(Role::User, "what is ");
    seen.content.push(ContentPart::Media(Media { media_type: "image/png".into(), bytes: vec![1].into() }));
    let source =
        "{% for part in messages[0].content %}{{ part.text if part.type == 'text' else '<image>' }}{% endfor %}";
    assert_eq!(template(source).render(&[seen], &RenderOptions::default()).unwrap(), "what is <image>");
}

#[test]
fn a_template_may_refuse_a_conversation_and_ask_the_date() {
    let refusing =
        template("{% if messages[0].role == 'system' %}\n{{ raise_exception('no system role') }}{% endif %}");
    let refused = refusing.render(&conversation(), &RenderOptions::default()).unwrap_err().to_string();
    assert!(
        refused.ends_with("tokenizer_config.json, line 2 of the template: the chat template refuses the conversation: no system role\nhint: change the messages, or the template"),
        "{refused}"
    );
    let date = template("{{ strftime_now('%Y-%m-%d') }}").render(&[], &RenderOptions::default()).unwrap();
    assert!(date.len() == 10 && date.as_str() > "2024-01-01", "{date}");
    let wrong = template("{{ strftime_now('%Q') }}").render(&[], &RenderOptions::default()).unwrap_err();
    assert!(wrong.to_string().contains("does not know the format \"%Q\""), "{wrong}");
}

#[test]
fn of_several_templates_the_one_for_tools_takes_tools() {
    let dir = tempfile::tempdir().unwrap();
    let tools = [serde_json::json!({"type": "function", "function": {"name": "f"}})];
    let rendered = |tools: &[serde_json::Value]| {
        let options = RenderOptions { tools, ..RenderOptions::default() };
        ChatTemplate::load(dir.path()).unwrap().render(&conversation(), &options).unwrap()
    };
    let list = |first: &str| {
        serde_json::json!({"chat_template": [
            {"name": first, "template": "plain {{ tools is none }}"},
            {"name": "tool_use", "template": "{{ tools[0].function.name }}"},
        ]})
    };
    write(dir.path(), "tokenizer_config.json", &list("default").to_string());
    assert_eq!((rendered(&[]).as_str(), rendered(&tools).as_str()), ("plain True", "f"));
    // They are saved together.
    Tokenizer::byte_level().save(dir.path()).unwrap();
    write(dir.path(), "tokenizer_config.json", &list("default").to_string());
    write(dir.path(), "generation_config.json", r#"{"eos_token_id": 2}"#);
    let again = dir.path().join("again");
    TextModel::load(dir.path()).unwrap().save(&again).unwrap();
    let saved: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(again.join("tokenizer_config.json")).unwrap()).unwrap();
    assert_eq!(saved["chat_template"], list("default")["chat_template"]);
    // Templates in files come before those in tokenizer_config.json.
    write(dir.path(), "chat_template.jinja", "in a file");
    assert_eq!(rendered(&tools), "in a file");
    std::fs::create_dir(dir.path().join("additional_chat_templates")).unwrap();
    write(dir.path(), "additional_chat_templates/tool_use.jinja", "for tools");
    assert_eq!((rendered(&[]).as_str(), rendered(&tools).as_str()), ("in a file", "for tools"));
    std::fs::remove_file(dir.path().join("chat_template.jinja")).unwrap();
    std::fs::remove_dir_all(dir.path().join("additional_chat_templates")).unwrap();
    write(dir.path(), "tokenizer_config.json", &list("rag").to_string());
    let error = ChatTemplate::load(dir.path()).err().unwrap().to_string();
    assert!(
        error.ends_with("no chat template is named `default`: there are rag, tool_use\nhint: name one `default`"),
        "{error}"
    );
}

#[test]
fn variables_of_the_model_and_of_the_call_reach_the_template() {
    let mut template = template("{{ enable_thinking }} {{ eos_token }}");
    let variables = |json: serde_json::Value| json.as_object().unwrap().clone();
    template.set_variables(variables(serde_json::json!({"enable_thinking": false})));
    let render = |options: &RenderOptions| template.render(&conversation(), options).unwrap();
    assert_eq!(render(&RenderOptions::default()), "False </s>");
    let more = variables(serde_json::json!({"enable_thinking": "a bit"}));
    assert_eq!(render(&RenderOptions { variables: more, ..RenderOptions::default() }), "a bit </s>");
}

#[test]
fn a_template_that_fails_is_named_with_the_line() {
    let fails =
        |source: &str| template(source).render(&conversation(), &RenderOptions::default()).unwrap_err().to_string();
    let error = fails("\n\n{{ messages[0].content + none }}");
    assert!(
        error.contains("tokenizer_config.json, line 3 of the template: the chat template failed: ")
            && error.ends_with("\nhint: correct the template, or remove what it does not support from the messages"),
        "{error}"
    );
    // The message has the line of the error, not the line where the macro is called.
    let error = fails("{% macro m(x) %}\n{{ raise_exception('no ' ~ x) }}{% endmacro %}\n\n{{ m('way') }}");
    assert!(
        error.contains(", line 2 of the template: the chat template refuses the conversation: no way\n"),
        "{error}"
    );
    // Not even a panic of the engine takes the host down.
    let error = fails("{{ [][::-1] }}");
    assert!(error.contains("the template engine panicked"), "{error}");
}

#[test]
fn a_template_without_bounds_costs_an_error() {
    let many = |body: &str| {
        format!("{{% set n = namespace(s='xx', l=['x']) %}}{{% for i in range(100) %}}{body}{{% endfor %}}")
    };
    let long = "x".repeat(1 << 20);
    let attacks = [
        many("{% set n.s = n.s ~ n.s %}"),
        many("{% set n.s = n.s + n.s %}"),
        many("{% set n.s = n.s * 1000 %}"),
        many("{% set n.s %}{{ n.s }}{{ n.s }}{% endset %}"),
        many("{% set n.s = n.s|replace('x', n.s) %}"),
        many("{% set n.s = [n.s, n.s]|join(n.s) %}"),
        many("{% set n.s = n.s.replace('x', 'xx') %}"),
        many("{% set n.s = n.s.join([n.s, n.s]) %}"),
        many("{% set n.l = [n.l, n.l] %}") + "{{ n.l }}",
        many("{% set n.l = [n.l, n.l] %}") + "{{ n.l ~ 'x' }}",
        many("{% set n.l = [n.l, n.l] %}") + "{{ n.l|tojson }}",
        many("{% set n.l = n.l + n.l %}") + "{{ n.l }}",
        "{% macro m(s) %}{{ m(s ~ s) }}{% endmacro %}{{ m('xx') }}".into(),
        "{{ 'x'.zfill(100000000000000) }}".into(),
        "{{ '%0100000000000000d'|format(1) }}".into(),
        "{{ '%*d'|format(100000000000000, 1) }}".into(),
        "{{ '{:100000000000000}'.format('x') }}".into(),
        "{{ '{:{}}'.format('x', 100000000000000) }}".into(),
        "{{ [1]|slice(100000000000000) }}".into(),
        "{{ [1]|batch(100000000000000, 2) }}".into(),
        "{{ (['x' * 10000000] * 1000)|join }}".into(),
        "{{ (['x' * 10000000] * 1000)|string }}".into(),
        "{{ ([['x'] * 1000000] * 1000)|sum(start=[])|list|length }}".into(),
        "{% set n = namespace(l=[]) %}{% for i in range(100000) %}{% set n.l = [n.l] %}{% endfor %}".into(),
        "{% set n = namespace(l=[]) %}{% for i in range(100000) %}{% set n.l = {'a': n.l} %}{% endfor %}".into(),
        "{% set n = namespace(l=[]) %}{% for i in range(100000) %}{% set n.l = (n.l,) %}{% endfor %}".into(),
        "{% set n = namespace(l=[]) %}{% for i in range(100000) %}{% set n.l = namespace(x=n.l) %}{% endfor %}".into(),
        "{{ 'x'.center(100000000000000) }}".into(),
        "{{ 'x\ny'|indent(100000000000000) }}".into(),
        "{{ [1]|tojson(indent=100000000000000) }}".into(),
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}".into(),
        format!("{{% for i in range(100000) %}}{long}{{% endfor %}}"),
        format!("{{% set s %}}{{% for i in range(100000) %}}{long}{{% endfor %}}{{% endset %}}"),
        format!("{{{{ {}'x' }}}}", "('x' * 100000000) ~ ".repeat(100)),
    ];
    for source in attacks {
        let said = template(&source).render(&conversation(), &RenderOptions::default()).map(|text| text.len());
        let source: String = source.chars().take(200).collect();
        assert!(said.is_err(), "{source}");
    }
}

#[test]
fn a_namespace_cannot_contain_itself() {
    let two = "{% set n = namespace(a=1) %}{% set m = namespace(l=[n]) %}";
    let render = |rest: &str| template(&format!("{two}{rest}")).render(&conversation(), &RenderOptions::default());
    for cycle in ["n.a = m", "n.a = [[m]]", "n.a = {'b': m}", "(m.l, n.a) = ([], m)", "n.a = namespace(b=m)"] {
        let error = render(&format!("{{% set {cycle} %}}{{{{ n == m }}}}")).unwrap_err().to_string();
        assert!(error.contains("a namespace in a namespace may contain itself"), "{cycle}: {error}");
    }
    assert_eq!(
        render("{% set n.a = [{'b': 'c'}] %}{% set o = n %}{{ o.a }} {{ m.l[0] == n }}").unwrap(),
        "[{'b': 'c'}] True"
    );
}

#[test]
fn a_template_of_any_depth_is_read_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let load = |source: String| {
        write(dir.path(), "chat_template.jinja", &source);
        ChatTemplate::load(dir.path()).map(|template| template.unknown_token()).map_err(|error| error.to_string())
    };
    let around = |start: &str, many: &str, times: usize, end: &str| {
        load(format!("{{{{ {start}{}{end} }}}}", many.repeat(times)))
    };
    // Within the bounds, the deepest templates of each form do not overflow the stack.
    for (start, many, times, end) in [
        ("a", "-1", 2000, ""),
        ("", "not ", 4000, "a"),
        ("", "-", 4000, "1"),
        ("a", ".b", 2000, ""),
        ("a", "[0]", 1300, ""),
        ("a", "|string", 2000, ""),
        ("a", " is string", 2000, ""),
        ("a", "()", 2000, ""),
        ("a", " if a", 2000, ""),
        ("a", " if a else a", 1000, ""),
        ("a", "==a", 2000, ""),
        ("a", " and a", 2000, ""),
        ("a", "**1", 2000, ""),
        ("[", "a,", 2000, "]"),
    ] {
        assert_eq!(around(start, many, times, end), Ok(None), "{many}");
        let error = around(start, many, 200_000, end).unwrap_err();
        assert!(error.contains("chat_template.jinja: the chat template has more than 4096 words and signs"), "{error}");
    }
    let brackets = around("", "(", 4000, "").unwrap_err();
    assert!(
        brackets.contains("the chat template has an error: template exceeds maximum recursion limits"),
        "{brackets}"
    );
    let chain = |elif: usize| load(format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(elif)));
    assert_eq!(chain(1000), Ok(None));
    assert!(chain(100_000).unwrap_err().contains("the chat template has more than 1024 `elif`"));
}

#[test]
fn a_template_with_long_texts_has_few_steps() {
    let render = |source: &str| template(source).render(&conversation(), &RenderOptions::default());
    let turns = |bytes: usize, turns: usize| {
        render(&format!("{{% set s = 'x' * {bytes} %}}{{% for i in range({turns}) %}}{{{{ i }}}}{{% endfor %}}"))
    };
    assert!(turns(1_000, 20_000).is_ok() && turns(10_000_000, 500).is_ok());
    let error = turns(10_000_000, 20_000).unwrap_err().to_string();
    assert!(error.contains("the chat template failed: engine ran out of fuel"), "{error}");
    // A text that is long only in the end, and one that a block makes.
    let long = "{% set n = namespace(s='') %}{% for i in range(1000) %}{% set n.s = n.s ~ 'x' * 200 %}{% endfor %}";
    assert_eq!(render(&format!("{long}{{{{ n.s|length }}}}")).unwrap(), "200000");
    let block = "{% set s %}{% for i in range(1000) %}{{ 'x' * 200 }}{% endfor %}{% endset %}{{ s|length }}";
    assert_eq!(render(block).unwrap(), "200000");
}

#[test]
fn a_template_goes_through_long_texts_only_so_often() {
    let render = |times: usize| {
        let source = format!(
            "{{% set s = 'x' * 60000 %}}{{% for i in range({times}) %}}{{% if s|upper %}}{{% endif %}}{{% endfor %}}done"
        );
        template(&source).render(&conversation(), &RenderOptions::default()).map_err(|error| error.to_string())
    };
    // Loading it, which shows the form of messages that it takes, has an eighth of the work.
    assert_eq!(render(1200).as_deref(), Ok("done"));
    let error = render(7000).unwrap_err();
    assert!(error.contains("the chat template failed: it goes through long texts and lists too often"), "{error}");
}

#[test]
fn a_definition_that_the_library_does_not_survive_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(dir.path()).unwrap();
    let path = dir.path().join("tokenizer.json");
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let load = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut definition = whole.clone();
        change(&mut definition);
        std::fs::write(&path, definition.to_string()).unwrap();
        Tokenizer::load(dir.path())
    };
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let error = load(change).map(drop).unwrap_err().to_string();
        error.replace(&format!("{}/", dir.path().display()), "")
    };
    let table = |table: &str| serde_json::json!({"type": "Precompiled", "precompiled_charsmap": table});
    let panicked = "tokenizer.json: the definition is damaged: the tokenizers library panicked: ";
    let hint = "\nhint: download the file again, or save it with `transformers`";
    let is_panic =
        |error: &str| error.starts_with(panicked) && error.len() > panicked.len() + hint.len() && error.ends_with(hint);
    let error = refused(&|whole| whole["normalizer"] = table("AAAA"));
    assert!(is_panic(&error), "{error}");
    let short = |whole: &mut serde_json::Value| {
        whole["model"]["continuing_subword_prefix"] = "##".into();
        whole["model"]["merges"] = serde_json::json!([["a", "b"]]);
    };
    let error = refused(&short);
    assert!(is_panic(&error), "{error}");
    // A trie whose one node leads far beyond its end: it fails only with a text.
    let beyond = load(&|whole| whole["normalizer"] = table("BAAAAAD///94AA=="));
    let error = beyond.and_then(|tokenizer| tokenizer.encode("a")).unwrap_err().to_string();
    let error = error.replace(&format!("{}/", dir.path().display()), "");
    assert!(is_panic(&error), "{error}");
    // A decoder that strips more than there is fails only with tokens.
    let strips = load(&|whole| {
        let strip = serde_json::json!({"type": "Strip", "content": "a", "start": 0, "stop": 9});
        whole["decoder"] = serde_json::json!({"type": "Sequence", "decoders": [{"type": "Fuse"}, strip]});
    });
    let mut stream = strips.unwrap().stream(true);
    let error = stream.push(100).and_then(|_| stream.finish()).unwrap_err().to_string();
    let error = error.replace(&format!("{}/", dir.path().display()), "");
    assert!(is_panic(&error), "{error}");
    // Searching for a token of 50 MB would take 4 GB.
    let long = |whole: &mut serde_json::Value| whole["added_tokens"][1]["content"] = "x".repeat((4 << 20) + 1).into();
    assert_eq!(refused(&long), "tokenizer.json: `added_tokens` have more than 4194304 bytes");
}

#[test]
fn words_are_divided_unless_it_takes_too_long() {
    let dir = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(dir.path()).unwrap();
    let path = dir.path().join("tokenizer.json");
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let load = |longest: u64| {
        let mut definition = whole.clone();
        definition["pre_tokenizer"] = serde_json::json!({"type": "WhitespaceSplit"});
        definition["model"] = serde_json::json!({
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": longest,
            "vocab": {"<|pad|>": 0, "<|im_start|>": 1, "<|im_end|>": 2, "[UNK]": 3, "a": 4, "##a": 5},
        });
        std::fs::write(&path, definition.to_string()).unwrap();
        Tokenizer::load(dir.path()).unwrap()
    };
    let words = |count: usize, characters: usize| vec!["b".repeat(characters); count].join(" ");
    for longest in [100, 257, 1000, 1_000_000_000] {
        let tokenizer = load(longest);
        let divided = if longest == 100 { vec![3] } else { [vec![4], vec![5; 256]].concat() };
        assert_eq!(tokenizer.encode(&"a".repeat(257)).unwrap(), divided, "{longest}");
        // Short words of a long text, and words that are too long for any model but the last.
        assert_eq!(tokenizer.encode(&words(100_000, 8)).unwrap(), vec![3; 100_000], "{longest}");
        assert_eq!(tokenizer.encode(&words(2, 3000)).unwrap(), [3, 3], "{longest}");
        let long = tokenizer.encode(&words(1, 4097)).map_err(|error| error.to_string());
        assert_eq!(long.is_err(), longest == 1_000_000_000, "{long:?}");
    }
    let tokenizer = load(1_000_000_000);
    assert_eq!(tokenizer.encode(&words(1, 4096)).unwrap(), [3]);
    for (count, characters) in [(1, 4097), (3, 3000)] {
        let error = tokenizer.encode(&words(count, characters)).unwrap_err().to_string();
        let says = format!("a text has words of up to {characters} characters, which take too long to divide\n");
        assert!(error.contains(&says), "{error}");
        assert_eq!(tokenizer.encode_inside(&words(count, characters)).unwrap_err().to_string(), error);
    }
}

#[test]
fn many_tokens_may_end_a_text() {
    let dir = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(dir.path()).unwrap();
    let ids = (0..200_000).rev().chain([7, 2]).collect::<Vec<u32>>();
    write(dir.path(), "generation_config.json", &serde_json::json!({"eos_token_id": ids}).to_string());
    let tokenizer = Tokenizer::load(dir.path()).unwrap();
    assert_eq!((tokenizer.eos(), tokenizer.stop_ids().len()), (2, 200_000));
    assert_eq!(tokenizer.stop_ids()[1], 199_999);
}

#[test]
fn a_tokenizer_that_makes_texts_long_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(dir.path()).unwrap();
    let path = dir.path().join("tokenizer.json");
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let load = |part: &str, value: serde_json::Value| {
        let mut definition = whole.clone();
        definition[part] = value;
        std::fs::write(&path, definition.to_string()).unwrap();
        Tokenizer::load(dir.path())
            .map_err(|error| error.to_string().replace(&format!("{}/", dir.path().display()), ""))
    };
    let steps = |kind: &str, step: serde_json::Value, count: usize| serde_json::json!({"type": "Sequence", kind: vec![step; count]});
    let replace = |pattern: serde_json::Value, content: &str| serde_json::json!({"type": "Replace", "pattern": pattern, "content": content});
    let doubled = || replace(serde_json::json!({"String": "a"}), "aa");
    let refused = |part: &str, value| load(part, value).map(drop).unwrap_err();
    let longer = |part: &str| format!("tokenizer.json: `{part}` may make a text more than 4096 times as long");
    assert_eq!(refused("normalizer", steps("normalizers", doubled(), 30)), longer("normalizer"));
    let everywhere = replace(serde_json::json!({"Regex": "x*"}), "aa");
    assert_eq!(refused("normalizer", steps("normalizers", everywhere, 8)), longer("normalizer"));
    assert_eq!(refused("decoder", steps("decoders", doubled(), 30)), longer("decoder"));
    let bytes =
        serde_json::json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    assert_eq!(refused("pre_tokenizer", steps("pretokenizers", bytes, 6)), longer("pre_tokenizer"));
    let both = "tokenizer.json: `normalizer` and `pre_tokenizer` may make a text more than 4096 times as long";
    assert_eq!(refused("normalizer", steps("normalizers", doubled(), 12)), both);
    let prepend = serde_json::json!({"type": "Prepend", "prepend": ""});
    let many = refused("normalizer", steps("normalizers", prepend, 500));
    assert_eq!(many, "tokenizer.json: `normalizer` has more than 64 steps");
    let large = refused("normalizer", replace(serde_json::json!({"String": "a"}), &"b".repeat(5 << 20)));
    assert_eq!(large, "tokenizer.json: `normalizer` has more than 4194304 bytes");
    let mut model = whole["model"].clone();
    model["end_of_word_suffix"] = "x".repeat(65).into();
    assert_eq!(refused("model", model), "tokenizer.json: `model.end_of_word_suffix` has more than 64 bytes");

    let template = |ids: usize, texts: usize| {
        let sequence = serde_json::json!({"Sequence": {"id": "A", "type_id": 0}});
        let mut single = vec![sequence.clone(); texts];
        single.push(serde_json::json!({"SpecialToken": {"id": "<|pad|>", "type_id": 0}}));
        serde_json::json!({
            "type": "TemplateProcessing", "single": single,
            "pair": [sequence, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<|pad|>": {"id": "<|pad|>", "ids": vec![0; ids], "tokens": vec!["<|pad|>"; ids]}}
        })
    };
    assert_eq!(load("post_processor", template(1000, 1)).unwrap().encode_whole("a").unwrap().len(), 1001);
    let added = "tokenizer.json: `post_processor` puts more than 1024 tokens around a text";
    assert_eq!(refused("post_processor", template(2000, 1)), added);
    assert_eq!(refused("post_processor", template(1, 3)), added);

    // Within the bounds, a text may still be too long.
    let tokenizer = load("normalizer", steps("normalizers", doubled(), 8)).unwrap();
    assert_eq!(tokenizer.encode("a").unwrap().len(), 256);
    let error = tokenizer.encode(&"b".repeat(200_000)).unwrap_err().to_string();
    let message = "a text of 200000 characters, of which each may become 1280, is too long";
    assert_eq!(error, format!("the tokenizer failed: {message}\nhint: shorten the text"));
}

#[test]
fn a_reply_is_taken_apart_by_the_models_own_form() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "chat_template.jinja", "{# writes <tool_call> #}");
    let text = TextModel { template: ChatTemplate::load(dir.path()).unwrap(), ..TextModel::byte_level() };
    let reply = "I look. <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    let mut ids = text.tokenizer.encode(reply).unwrap();
    ids.push(text.tokenizer.eos());
    let tools = [serde_json::json!({"type": "function", "function": {"name": "f"}})];
    let taken = text.reply(&ids, reply.into(), &tools, 0).unwrap();
    assert_eq!((taken.content.as_str(), taken.tool_calls[0].name.as_str()), ("I look.", "f"));
    // Without tools, or without calls, the content is the text.
    assert_eq!(text.reply(&ids, reply.into(), &[], 0).unwrap().content, reply);
    let plain = text.tokenizer.encode(" no call<|im_end|>").unwrap();
    assert_eq!(text.reply(&plain, " no call".into(), &tools, 0).unwrap().content, " no call");
    // Text that was cut off is not part of the reply.
    let ids = text.tokenizer.encode(&format!("{reply}\nObservation:")).unwrap();
    let taken = text.reply(&ids, format!("{reply}\n"), &tools, 0).unwrap();
    assert_eq!((taken.content.as_str(), taken.tool_calls.len()), ("I look.", 1));
}

#[test]
fn a_text_that_stands_alone_gets_its_special_tokens() {
    let dir = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(dir.path()).unwrap();
    let path = dir.path().join("tokenizer.json");
    let mut definition: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let special = |name: &str| serde_json::json!({"SpecialToken": {"id": name, "type_id": 0}});
    let sequence = serde_json::json!({"Sequence": {"id": "A", "type_id": 0}});
    definition["post_processor"] = serde_json::json!({
        "type": "TemplateProcessing", "single": [special("<|im_start|>"), sequence],
        "pair": [sequence, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}}
    });
    std::fs::write(&path, definition.to_string()).unwrap();
    let tokenizer = Tokenizer::load(dir.path()).unwrap();
    let byte = |byte: u8| 3 + u32::from(byte);
    assert_eq!(tokenizer.encode("a").unwrap(), [byte(b'a')]);
    assert_eq!(tokenizer.encode_whole("a").unwrap(), [1, byte(b'a')]);
    assert_eq!(TextModel::byte_level().tokenizer.encode_whole("a").unwrap(), [byte(b'a')]);
}
