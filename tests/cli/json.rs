//! Every command's JSON, where it succeeds and where it fails, is as docs/cli.schema.json says; `Ran::json` checks it.

use super::schema::{self, SCHEMA};
use super::{PAIR, SHORT_RING, folder_with, in_folder};
use serde_json::{Value, json};

#[test]
fn every_command_prints_what_the_schema_says() {
    let folder = folder_with(PAIR);
    std::fs::write(folder.path().join("short.rs"), SHORT_RING).unwrap();
    std::fs::write(folder.path().join("syntax.rs"), "fn f( {").unwrap();
    std::fs::write(folder.path().join("plan.xml"), include_str!("../interop/ring_all_reduce.xml")).unwrap();
    std::fs::write(folder.path().join("wrong.xml"), "<algo/>").unwrap();
    let cases = [
        ("check file.rs::first", 0),
        ("check file.rs::second --all-ranks", 0),
        ("check short.rs", 1),
        ("check syntax.rs", 1),
        ("check none.rs", 2),
        ("check file.rs::first --ranks 3", 2),
        ("compile file.rs::first --emit program,schedule,kernel,cuda,ptx", 0),
        ("compile file.rs::first -o out", 0),
        ("compile short.rs -o out", 1),
        ("compile file.rs::first --emit mscclpp", 0),
        ("compile file.rs::first", 2),
        ("compile file.rs::first --emit cubin --arch sm_999 -o out", 2),
        ("run file.rs::first --ranks 2 --bytes 64", 0),
        ("run file.rs::second --ranks 2 --bytes 64 --iterations 2", 0),
        ("run file.rs::first --ranks 2 --bytes 64 --race-check --seeds 2", 0),
        ("run short.rs", 1),
        ("run file.rs::first --input none.npy", 2),
        ("run file.rs::first --bytes 1000000GiB", 3),
        ("sim file.rs::first --ranks 2 --bytes 64", 0),
        ("sim file.rs::first --ranks 2 --bytes 64 --seeds 0 --trace out.json", 0),
        ("sim file.rs::first --ranks 3", 2),
        ("sim short.rs", 1),
        ("import plan.xml", 0),
        ("import plan.xml --emit rust", 0),
        ("compile file.rs::first --emit msccl", 0),
        ("import file.rs", 2),
        ("import wrong.xml", 1),
        ("new my-ring", 0),
        ("new my-ring", 2),
        ("new fn", 2),
        ("check file.rs", 0),
        ("builtins", 0),
        ("completions bash", 0),
        ("completions cmd", 2),
        ("doctor", 0),
        ("device-check --world virtual --ranks 2 --parts copies --budget 30s", 0),
        ("device-check --ranks 0", 2),
        ("bench", 2),
    ];
    let mut seen = Vec::new();
    for (arguments, status) in cases {
        let ran = in_folder(&folder, &format!("{arguments} --format json"));
        assert_eq!(ran.status, status, "{arguments}: {ran:#?}");
        let json = ran.json();
        assert_eq!(json["status"], status, "{arguments}");
        // What fails says why, in one of two ways.
        let told = !json["error"].is_null() || json["diagnostics"] != json!([]);
        assert_eq!(told, status != 0, "{arguments}: {json:#}");
        seen.push(format!("#/$defs/{}", json["command"].as_str().unwrap()));
    }
    for described in SCHEMA["oneOf"].as_array().unwrap() {
        assert!(seen.iter().any(|seen| described["$ref"] == **seen), "{described} was not seen");
    }
}

/// The check of the tests themselves.
#[test]
fn what_the_schema_does_not_say_is_found() {
    let good = json!({
        "command": "new", "status": 0, "diagnostics": [], "error": null,
        "name": "a", "quadrille": "b", "files": ["c"],
    });
    assert_eq!(schema::check(&good), Ok(()));
    let changes: [(&str, Value, &str); 7] = [
        ("status", json!(4), "must be [0,1,2,3]"),
        ("name", json!(1), "must be of type \"string\""),
        ("more", json!(1), "has more, which is not described"),
        ("files", json!([1]), "new.files[0]"),
        ("error", json!({ "message": "m" }), "0 descriptions fit"),
        ("command", json!("old"), "no command `old`"),
        ("diagnostics", json!([{}]), "lacks"),
    ];
    for (name, value, complaint) in changes {
        let mut wrong = good.clone();
        wrong[name] = value;
        let error = schema::check(&wrong).unwrap_err();
        assert!(error.contains(complaint), "{error}");
    }
    let mut wrong = good.clone();
    wrong.as_object_mut().unwrap().remove("files");
    assert!(schema::check(&wrong).unwrap_err().contains("lacks \"files\""));
    // Only what succeeds has to have everything.
    wrong["status"] = json!(2);
    assert_eq!(schema::check(&wrong), Ok(()));
}

/// What `doctor` says of machines with GPUs.
#[test]
fn a_multicast_object_was_made_or_it_is_said_why_not() {
    let said = |multicast: Value| {
        schema::check(&json!({
            "command": "doctor", "status": 0, "diagnostics": [], "error": null,
            "findings": [], "links": [], "worlds": [], "multicast": multicast,
        }))
    };
    assert_eq!(said(json!({ "made": true, "error": null })), Ok(()));
    assert_eq!(said(json!({ "made": false, "error": "why" })), Ok(()));
    assert_eq!(said(Value::Null), Ok(()));
    for wrong in [json!(false), json!({ "made": false }), json!({ "made": "yes", "error": null })] {
        assert!(said(wrong.clone()).is_err(), "{wrong}");
    }
}

/// The table for people names the same fields.
#[test]
fn the_documents_agree() {
    let text = include_str!("../../docs/cli.md");
    for command in ["check", "compile", "run", "new", "doctor"] {
        let row = text.lines().rfind(|line| line.starts_with(&format!("| {command} |"))).unwrap();
        for name in SCHEMA["$defs"][command]["properties"].as_object().unwrap().keys() {
            let common = ["command", "status", "diagnostics", "error"].contains(&name.as_str());
            assert!(common || row.contains(&format!("`{name}`")), "no `{name}` in {row}");
        }
    }
}
