//! MSCCL XML, through the whole proof.

use crate::{CASES, Format, fuzz, fuzz_on};
use quadrille_compiler::diagnostic::Diagnostics;
use quadrille_compiler::dtype::{DType, RedOp};
use quadrille_compiler::interop::msccl;
use std::path::Path;

fn format() -> Format {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/interop");
    let mut files: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
    files.sort();
    assert!(!files.is_empty());
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let words = &[
        "algo",
        "gpu",
        "tb",
        "step",
        "rrcs",
        "rcs",
        "rrc",
        "re",
        "cpy",
        "nop",
        "s",
        "i",
        "o",
        "Simple",
        "LL128",
        "allreduce",
        "alltoall",
        "<",
        ">",
        "/>",
        "\"",
        "=",
        "&amp;",
        "&#0;",
        "<!--",
        "-->",
        "<![CDATA[",
        "<?x?>",
        "<gpu>",
        "</gpu>",
        "<step/>",
        "\u{feff}",
        "ä",
    ];
    Format { texts, words, read }
}

fn read(text: &str) -> Result<bool, String> {
    let proved = || -> Result<(), Diagnostics> {
        let plan = msccl::import("plan.xml", text)?;
        let domain = plan.domain(plan.ranks[0]);
        plan.report(plan.ranks[0])?;
        plan.kernel(&domain, DType::F32, RedOp::Sum).map(drop)
    };
    let Err(wrong) = proved() else { return Ok(true) };
    let lines = text.lines().count().max(1) as u32;
    let placed = |finding: &quadrille_compiler::diagnostic::Diagnostic| {
        let line = finding.loc.map(|loc| loc.start.line);
        !finding.message.is_empty() && line.is_some_and(|line| (1..=lines + 1).contains(&line))
    };
    if wrong.list.is_empty() || !wrong.list.iter().all(placed) {
        return Err(format!("no place: {wrong}"));
    }
    let _ = wrong.render(false);
    Ok(false)
}

#[test]
fn damaged_plans() {
    fuzz(&format(), CASES);
}

#[test]
#[ignore = "takes a minute, or as long as QUADRILLE_FUZZ_SECONDS says"]
fn plans_for_long() {
    fuzz_on(&format());
}

/// Depth, width and numbers are refused before anything grows with them.
#[test]
fn absurd_texts() {
    let refused = |text: &str| {
        assert_eq!(read(text), Ok(false), "{}", text.chars().take(200).collect::<String>());
    };
    refused(&"<algo>".repeat(200_000));
    refused(&format!("<algo {}/>", (0..100_000).map(|i| format!("a{i}=\"{i}\" ")).collect::<String>()));
    refused(&"<".repeat(1 << 20));
    for (name, value) in [("ngpus", "1000000000"), ("nchunksperloop", "1000000000"), ("nchunksperloop", "-1")]
    {
        let others =
            [("ngpus", "2"), ("nchunksperloop", "2")].into_iter().filter(|(other, _)| *other != name);
        let others: String = others.map(|(name, value)| format!("{name}=\"{value}\" ")).collect();
        refused(&format!(
            "<algo name=\"a\" proto=\"LL\" {others} {name}=\"{value}\" coll=\"allreduce\" inplace=\"1\"/>"
        ));
    }
}
