//! MSCCL++ execution plans, through the whole proof.

use super::msccl::{judged, texts};
use super::{CASES, Format, fuzz, fuzz_on};
use quadrille_compiler::interop::mscclpp;

fn format() -> Format {
    let words = &[
        "\"name\"",
        "\"ops\"",
        "\"nop\"",
        "\"put\"",
        "\"get\"",
        "\"rre\"",
        "\"res\"",
        "\"rppkt\"",
        "\"recspkt\"",
        "\"gstore\"",
        "\"signal\"",
        "\"rlxwait\"",
        "\"sem_acquire\"",
        "\"barrier\"",
        "\"pipeline\"",
        "\"memory\"",
        "\"port\"",
        "\"switch\"",
        "\"LL\"",
        "\"alltoall\"",
        "\"s\"",
        "\"index\": 1",
        "\"size\": 2",
        "\"tbg_info\": {\"tb_id\": 0, \"tbg_size\": 2},",
        "{",
        "}",
        "[",
        "]",
        "[]",
        "{}",
        ",",
        ":",
        "null",
        "true",
        "-1",
        "1e9",
        "\\u0000",
        "\u{feff}",
        "ä",
    ];
    Format { texts: texts("json"), words, read }
}

fn read(text: &str) -> Result<bool, String> {
    judged(text, mscclpp::import)
}

#[test]
fn damaged_json_plans() {
    fuzz(&format(), CASES);
}

#[test]
#[ignore = "takes a minute, or as long as QUADRILLE_FUZZ_SECONDS says"]
fn json_plans_for_long() {
    fuzz_on(&format());
}

/// Depth, width and numbers are refused before anything grows with them.
#[test]
fn absurd_json_texts() {
    let refused = |text: &str| {
        assert_eq!(read(text), Ok(false), "{}", text.chars().take(200).collect::<String>());
    };
    refused(&"{\"a\": ".repeat(20_000));
    refused(&"[".repeat(1 << 16));
    refused(&format!("{{{}\"z\": 0}}", (0..10_000).map(|i| format!("\"a{i}\": {i}, ")).collect::<String>()));
    let [plan, ..] = &texts("json")[..] else { panic!("there are no plans") };
    for field in ["input_chunks", "output_chunks", "scratch_chunks", "index", "size"] {
        for number in ["1000000000", "18446744073709551616", "-1"] {
            let name = format!("\"{field}\": ");
            let at = plan.find(&name).unwrap() + name.len();
            let end = at + plan[at..].find(|c: char| !c.is_ascii_digit()).unwrap();
            refused(&format!("{}{number}{}", &plan[..at], &plan[end..]));
        }
    }
}
