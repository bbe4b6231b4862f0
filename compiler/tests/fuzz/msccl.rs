//! MSCCL XML, through the whole proof.

use super::{CASES, Format, fuzz, fuzz_on};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Diagnostic, Diagnostics};
use quadrille_compiler::interop::msccl;
use quadrille_compiler::program::dtype::{DType, RedOp};
use std::path::Path;

/// The plans whose files end so.
pub(crate) fn texts(extension: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/interop");
    let mut files: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|own| own == extension));
    files.sort();
    assert!(!files.is_empty());
    files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

fn format() -> Format {
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
    Format { texts: texts("xml"), words, read }
}

fn read(text: &str) -> Result<bool, String> {
    judged(text, msccl::import)
}

/// Whether a plan is read and proved; that what is refused has a line and a column of the text.
pub(crate) fn judged(
    text: &str,
    import: fn(&str, &str) -> Result<Collective, Diagnostics>,
) -> Result<bool, String> {
    let proved = || -> Result<(), Diagnostics> {
        let plan = import("plan", text)?;
        let domain = plan.domain(plan.ranks[0]);
        plan.report(plan.ranks[0])?;
        plan.kernel(&domain, DType::F32, RedOp::Sum).map(drop)
    };
    let Err(wrong) = proved() else { return Ok(true) };
    let lines: Vec<&str> = text.split('\n').collect();
    let placed = |finding: &Diagnostic| {
        let Some(start) = finding.loc.map(|loc| loc.start) else { return false };
        let line = lines.get((start.line as usize).wrapping_sub(1));
        let fits = line.is_some_and(|line| (start.column as usize) <= line.chars().count());
        !finding.message.is_empty() && fits
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
    refused(&"<algo>".repeat(20_000));
    refused(&format!("<algo {}/>", (0..10_000).map(|i| format!("a{i}=\"{i}\" ")).collect::<String>()));
    refused(&"<".repeat(1 << 16));
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
