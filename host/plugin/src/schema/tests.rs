use super::*;
use serde_json::{Map, json};

/// What a schema says of a value, or why it is no schema.
fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let (_, schema) = Schema::read(&schema.to_string(), &mut Room::default()).map_err(|error| error.to_string())?;
    schema.check(value).map_err(|refusal| match refusal {
        Refusal::Wrong(errors) => errors.join("; "),
        Refusal::TooManySteps => "too many steps".to_owned(),
    })
}

/// Schemas `0` to `links`, each made by `link` from the reference to the next. The last is `end`.
fn chain(links: usize, link: impl Fn(Value) -> Value, end: Value) -> Value {
    let next = |number: usize| json!({"$ref": format!("#/$defs/{}", number + 1)});
    let schemas = (0..links).map(|number| (number.to_string(), link(next(number))));
    let schemas: Map<String, Value> = schemas.chain([(links.to_string(), end)]).collect();
    json!({"$ref": "#/$defs/0", "$defs": schemas})
}

#[test]
fn a_schema_that_refers_to_itself_twice_takes_no_longer_for_each_level() {
    let object = |required: &str| json!({"type": "object", "properties": {"in": {"$ref": "#/$defs/node"}}, "required": [required]});
    let node = json!({"anyOf": [object("and"), object("or"), {"type": "string"}]});
    let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": node}});
    let nested = |levels: usize, inmost: Value| (0..levels).fold(inmost, |value, _| json!({"in": value, "or": true}));
    for levels in [0, 1, 3, 40, 120] {
        assert_eq!(check(&schema, &nested(levels, json!("leaf"))), Ok(()), "{levels}");
        let wrong = check(&schema, &nested(levels, json!({"in": "leaf"}))).unwrap_err();
        assert!(wrong.starts_with("{\"in\":") && wrong.chars().count() <= 300, "{wrong}");
    }
}

#[test]
fn a_chain_of_schemas_that_doubles_is_checked_once_for_each() {
    let twice = |next: Value| json!({"allOf": [next, next]});
    let schema = chain(34, twice, json!({"type": "object", "properties": {"a": true}}));
    assert_eq!(check(&schema, &json!({})), Ok(()));
    assert_eq!(check(&schema, &json!([])), Err("[] is not of type \"object\"".into()));
    let mut closed = schema;
    closed["unevaluatedProperties"] = json!(false);
    assert_eq!(check(&closed, &json!({"a": 1})), Ok(()));
    let unexpected = "Unevaluated properties are not allowed ('b' was unexpected)";
    assert_eq!(check(&closed, &json!({"a": 1, "b": 2})), Err(unexpected.into()));
}

#[test]
fn a_check_ends_when_its_steps_do() {
    let many = "too many steps".to_owned();
    let items: Vec<u32> = (0..500_000).collect();
    assert_eq!(
        check(&json!({"items": {"anyOf": [{"type": "string"}, {"minimum": 0}]}}), &json!(items)),
        Err(many.clone())
    );
    let options: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    assert_eq!(check(&json!({"items": {"enum": options}}), &json!(vec!["9999"; 5000])), Err(many.clone()));
    let regex = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": {"format": "regex"}});
    assert_eq!(check(&regex, &json!(vec!["(a{99}){99}"; 20])), Err(many));
}

#[test]
fn a_large_schema_is_refused() {
    let properties = |count: usize| {
        let members = (0..count).map(|number| (number.to_string(), json!({"maxLength": number})));
        json!({"properties": members.collect::<Map<_, _>>()})
    };
    let long = "has 2497796 bytes, more than the 262144 allowed\nhint: shorten it where the tool describes it";
    assert_eq!(check(&properties(90_000), &json!({})), Err(long.into()));
    let many = "has more than 10000 schemas within it, which are all that it may have\n\
                hint: shorten it where the tool describes it";
    assert_eq!(check(&json!({"allOf": vec![true; 10_000]}), &json!({})), Err(many.into()));
    assert_eq!(check(&json!({"allOf": vec![true; 9_999]}), &json!({})), Ok(()));
    let id = |bytes: usize| json!({"$id": format!("https://{}", "a".repeat(bytes - 8))});
    let ids = "has more than the 4096 bytes that `$id` may have in all\nhint: use shorter ones, or `$defs` without";
    assert_eq!(check(&id(4097), &json!({})), Err(ids.into()));
    assert_eq!(check(&id(4096), &json!({})), Ok(()));
    assert_eq!(check(&json!({"examples": [id(5000)], "properties": {"id": {"type": "string"}}}), &json!({})), Ok(()));
}

#[test]
fn the_schemas_of_a_tool_have_room_together() {
    let refused = |schema: Value, what: &str| {
        let (text, mut room) = (schema.to_string(), Room::default());
        let read = (0..).find_map(|number| Some((number, Schema::read(&text, &mut room).err()?)));
        let (read, error) = read.unwrap();
        assert_eq!(
            error.to_string(),
            format!(
                "has no room beside the others of its tool, which may have {what} in all\nhint: let the tool describe fewer functions, or shorter schemas"
            )
        );
        read
    };
    assert_eq!(refused(json!({"description": "a".repeat(260_000)}), "8388608 bytes"), 32);
    assert_eq!(refused(json!({"allOf": vec![true; 9_000]}), "50000 schemas within them"), 5);
    assert_eq!(refused(json!({"pattern": "^.{1,3000}$"}), "33554432 bytes of compiled patterns"), 8);
    // Each of its resources refers to the next, so that the last schemas are in the scope of all.
    let resource = |number: usize, more: Value| {
        let mut resource = json!({"$id": format!("r{number}")});
        resource.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (number.to_string(), resource)
    };
    let resources = (0..400).map(|number| resource(number, json!({"$ref": format!("r{}", number + 1)})));
    let properties: Map<String, Value> = (0..4_000).map(|number| (number.to_string(), json!(true))).collect();
    let last = resource(400, json!({"properties": properties}));
    let resources: Map<String, Value> = resources.chain([last]).collect();
    let schema = json!({"$id": format!("https://{}/", "a".repeat(1000)), "$ref": "r0", "$defs": resources});
    assert_eq!(refused(schema, "33554432 bytes of identifiers in the scopes of their schemas"), 0);
}

#[test]
fn patterns_are_searched_in_bounded_steps() {
    let matches = |pattern: &str, text: &str| {
        check(&json!({"pattern": pattern}), &json!(text)).map_err(|what| what.chars().take(20).collect())
    };
    // As zod writes it.
    let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
    assert_eq!(matches(email, "ada.lovelace@example.com"), Ok(()));
    assert_eq!(matches(email, "ada..lovelace@example.com"), Err("\"ada..lovelace@examp".to_owned()));
    assert_eq!(matches(r"^(\w)\w*\1$", "abcda"), Ok(()));
    assert_eq!(matches(r"^.{1,1000}$", &"é".repeat(1000)), Ok(()));
    assert_eq!(matches(r"\S", &"text ".repeat(20_000)), Ok(()));
    let many = || Err("too many steps".to_owned());
    assert_eq!(matches(r"^(a|aa)+(?=b)\1$", &"a".repeat(5000)), many());
    assert_eq!(matches("[01]*1[01]{3000}x", &"01".repeat(100_000)), many());
    assert_eq!(
        check(&json!({"pattern": "("}), &json!("")),
        Err("is not a JSON Schema: \"(\" is not a \"regex\"".into())
    );
    let names =
        json!({"patternProperties": {"^x-": {"type": "string"}, "(?<!y)z$": true}, "additionalProperties": false});
    assert_eq!(check(&names, &json!({"x-a": "", "az": 1})), Ok(()));
    let errors = "x-a: 1 is not of type \"string\"; Additional properties are not allowed ('yz' was unexpected)";
    assert_eq!(check(&names, &json!({"x-a": 1, "yz": 1})), Err(errors.into()));
}

/// Schemas, and for each values that it allows and values that it does not.
fn varied() -> Vec<(Value, Vec<Value>, Vec<Value>)> {
    let draft = |draft: &str| format!("http://json-schema.org/draft-0{draft}/schema#");
    let modern = |draft: &str| format!("https://json-schema.org/draft/{draft}/schema");
    vec![
        (
            json!({"$schema": draft("4"), "minimum": 2, "exclusiveMinimum": true, "const": 5, "id": "http://a/b"}),
            vec![json!(3), json!("x")],
            vec![json!(2), json!(1)],
        ),
        (
            json!({"$schema": draft("7"), "properties": {"a": {"$ref": "#/definitions/a", "type": "string"}},
                   "definitions": {"a": {"maximum": 3}}, "dependencies": {"b": ["c"], "d": {"required": ["e"]}},
                   "contains": {"const": 1}, "minContains": 2, "unevaluatedItems": false}),
            vec![json!({"a": 3, "b": 1, "c": 1}), json!({"a": "x"}), json!([1]), json!({"d": 1, "e": 1})],
            vec![json!({"a": 4}), json!({"b": 1}), json!({"d": 1}), json!([2])],
        ),
        (
            json!({"$schema": draft("6"), "items": [{"type": "integer"}, true], "additionalItems": {"type": "string"},
                   "if": false, "then": false, "propertyNames": {"maxLength": 2}}),
            vec![json!([1]), json!([1, null, "x"]), json!({"ab": 1})],
            vec![json!(["x"]), json!([1, 1, 1]), json!({"abc": 1})],
        ),
        (
            json!({"$schema": modern("2019-09"), "$recursiveAnchor": true, "properties": {"in": {"$recursiveRef": "#"}},
                   "$ref": "#/$defs/named", "$defs": {"named": {"properties": {"name": {"type": "string"}}}},
                   "unevaluatedProperties": false, "items": [true], "unevaluatedItems": {"type": "null"}}),
            vec![json!({"name": "x", "in": {"in": {}}}), json!([1, null]), json!([])],
            vec![json!({"name": 1}), json!({"in": {"other": 1}}), json!([1, 2])],
        ),
        (
            json!({"$schema": modern("2020-12"), "dependentSchemas": {"a": {"properties": {"b": {"const": 1}}}},
                   "if": {"properties": {"c": {"const": true}}, "required": ["c"]}, "then": {"required": ["d"]},
                   "else": {"properties": {"e": true}}, "anyOf": [{"properties": {"d": true}}, {"required": ["f"]}],
                   "oneOf": [{"properties": {"a": true}}, {"required": ["g"]}], "unevaluatedProperties": {"minimum": 9}}),
            vec![json!({"a": 0, "b": 1, "e": 0}), json!({"c": true, "d": 0}), json!({"x": 9}), json!({})],
            vec![json!({"a": 0, "b": 2}), json!({"c": true}), json!({"b": 1}), json!({"g": 9}), json!({"x": 8})],
        ),
        (
            json!({"$id": "https://example.com/strict", "$ref": "tree", "$dynamicAnchor": "node",
                   "unevaluatedProperties": false,
                   "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node", "properties": {
                       "data": true, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}}}}}),
            vec![json!({"children": [{"data": 1}]}), json!({"data": 1})],
            vec![json!({"children": [{"daat": 1}]}), json!({"children": 1}), json!({"daat": 1})],
        ),
        (
            json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}, "contains": {"type": "integer", "minimum": 5},
                   "minContains": 2, "maxContains": 3.0, "uniqueItems": true, "not": {"maxItems": 2}}),
            vec![json!(["x", 5, 6]), json!(["x", 5, 6, 1])],
            vec![json!([5, 6, 7]), json!(["x", 5, 1]), json!(["x", 5, 6, 7, 8]), json!(["x", 5, 5.0]), json!(["x", 5])],
        ),
        (
            json!({"type": "object", "properties": {
                "enum": {"enum": [{"$ref": "#/no"}, {"type": 5}]}, "const": {"const": {"pattern": "("}}, "default": {"default": {"$id": 3}}}}),
            vec![json!({"enum": {"type": 5}}), json!({"const": {"pattern": "("}}), json!({"default": 1})],
            vec![json!({"enum": 5}), json!({"const": {}}), json!(1)],
        ),
    ]
}

#[test]
fn verdicts_and_messages_are_the_crates() {
    for (schema, allowed, refused) in varied() {
        let plain = jsonschema::validator_for(&schema).unwrap();
        let values = allowed.iter().map(|value| (value, true)).chain(refused.iter().map(|value| (value, false)));
        for (value, is_allowed) in values {
            assert_eq!(plain.is_valid(value), is_allowed, "{schema} {value}");
            let first = plain.iter_errors(value).take(3).map(|error| match error.instance_path().as_str() {
                "" => error.to_string(),
                path => format!("{}: {error}", &path[1..]),
            });
            let expected: Vec<String> = first.collect();
            let expected = if is_allowed { Ok(()) } else { Err(expected.join("; ")) };
            assert_eq!(check(&schema, value), expected, "{schema}");
        }
    }
}

#[test]
fn what_is_no_schema_is_refused_as_by_the_crate() {
    for schema in [
        json!({"type": 3}),
        json!({"properties": {"a": {"minLength": "x"}}}),
        json!({"$ref": "#/nowhere"}),
        json!({"$schema": "https://example.com/unknown"}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "enum": 5}),
    ] {
        let plain = jsonschema::validator_for(&schema).err().map(|error| format!("is not a JSON Schema: {error}"));
        assert_eq!(check(&schema, &json!({})).err(), plain, "{schema}");
    }
    // The crate panics at these.
    let unknown = Err("is not a JSON Schema: `$schema` names no draft of JSON Schema".to_owned());
    assert_eq!(check(&json!({"$schema": "", "type": "object"}), &json!({})), unknown);
    let embedded = json!({"$id": "https://example.com/", "$schema": "#", "type": "object"});
    assert_eq!(check(&json!({"properties": {"a": embedded}}), &json!({})), unknown);
}
