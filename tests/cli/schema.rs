//! docs/cli.schema.json, and whether an object is as it says: as much of JSON Schema as that file uses, and a panic at
//! anything more.

use serde_json::Value;
use std::sync::LazyLock;

pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../docs/cli.schema.json")).unwrap_or_else(|error| panic!("{error}"))
});

/// What is wrong with an object, and where.
pub(crate) fn check(object: &Value) -> Result<(), String> {
    // The command decides which description counts: its complaint is clearer than that none of all fits.
    let command = object["command"].as_str().unwrap_or_default();
    let described = &SCHEMA["$defs"][command];
    let all = SCHEMA["oneOf"].as_array().unwrap();
    if !all.iter().any(|one| one["$ref"] == format!("#/$defs/{command}")) {
        return Err(format!("there is no command `{command}`"));
    }
    valid(described, object, command)
}

fn valid(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{at} is {value}: {what}"));
    for (keyword, says) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "description" => {}
            "$ref" => {
                let name = says.as_str().and_then(|text| text.strip_prefix("#/$defs/")).unwrap();
                valid(&SCHEMA["$defs"][name], value, at)?;
            }
            "oneOf" => {
                let one = says.as_array().unwrap().iter().map(|one| valid(one, value, at));
                let (good, bad): (Vec<_>, Vec<_>) = one.partition(Result::is_ok);
                if good.len() != 1 {
                    return wrong(format!("{} descriptions fit; {bad:?}", good.len()));
                }
            }
            "const" if value == says => {}
            "enum" if says.as_array().unwrap().contains(value) => {}
            "const" | "enum" => return wrong(format!("must be {says}")),
            "type" => {
                let names = says.as_array().cloned().unwrap_or_else(|| vec![says.clone()]);
                if !names.iter().any(|name| is(value, name.as_str().unwrap())) {
                    return wrong(format!("must be of type {says}"));
                }
            }
            "minimum" => {
                if value.as_f64().is_some_and(|number| number < says.as_f64().unwrap()) {
                    return wrong(format!("must be at least {says}"));
                }
            }
            "maxItems" => {
                if value.as_array().is_some_and(|list| list.len() as u64 > says.as_u64().unwrap()) {
                    return wrong(format!("must have at most {says} items"));
                }
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    valid(says, item, &format!("{at}[{i}]"))?;
                }
            }
            "properties" => {
                for (name, schema) in says.as_object().unwrap() {
                    if let Some(field) = value.get(name) {
                        valid(schema, field, &format!("{at}.{name}"))?;
                    }
                }
            }
            "required" => {
                for name in says.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        return wrong(format!("lacks {name}"));
                    }
                }
            }
            "additionalProperties" => {
                assert_eq!(says, false);
                for name in value.as_object().into_iter().flatten().map(|(name, _)| name) {
                    if schema["properties"].get(name).is_none() {
                        return wrong(format!("has {name}, which is not described"));
                    }
                }
            }
            "if" => {
                if valid(says, value, at).is_ok() {
                    valid(&schema["then"], value, at)?;
                }
            }
            "then" => assert!(schema.get("if").is_some()),
            other => panic!("{other} is not known to these tests"),
        }
    }
    Ok(())
}

fn is(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type of JSON Schema"),
    }
}
