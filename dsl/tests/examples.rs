//! The examples compute what their kinds promise, by running their operations over numbers, and cost what their comments
//! say.

use crate::common::formula::value;
use crate::common::interpreter::wrong;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::Check;
use std::path::Path;

/// A collective of `examples/`, with the text of its file.
struct Example {
    collective: Collective,
    text: String,
}

fn examples() -> Vec<Example> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut examples = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let mut collectives = quadrille_dsl::parse_file(&path.to_string_lossy(), &text).unwrap();
        assert_eq!(collectives.len(), 1, "one collective a file in {}", path.display());
        let collective = collectives.remove(0);
        assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(&collective.name[..]));
        examples.push(Example { collective, text });
    }
    assert!(!examples.is_empty());
    examples
}

/// The collective with each combination of its parameters, on every world of up to 16 ranks that it admits. It admits
/// those that it lists, and refuses the others by what it requires.
fn settings(collective: &Collective) -> Vec<(Collective, u32)> {
    let mut settings = Vec::new();
    for values in collective.combinations() {
        let mut set = collective.clone();
        set.params.iter_mut().zip(&values).for_each(|(param, &value)| param.value = value);
        for ranks in 1..=16 {
            match set.program(ranks) {
                Ok(_) => settings.push((set.clone(), ranks)),
                Err(wrong) => {
                    let required = wrong.list.iter().all(|finding| finding.check == Check::Requirement);
                    assert!(required && !set.ranks.contains(&ranks), "{values:?}, {ranks} ranks: {wrong}");
                }
            }
        }
    }
    assert!(settings.iter().any(|(_, ranks)| *ranks == 8), "{} runs on 8 ranks", collective.name);
    settings
}

#[test]
fn examples_are_right_for_every_size_parameter_and_root() {
    for Example { collective, .. } in examples() {
        for (collective, ranks) in settings(&collective) {
            let roots = if collective.kind.rooted() { ranks } else { 1 };
            for root in 0..roots {
                let program = collective.rooted(root).program(ranks).unwrap();
                assert_eq!(wrong(&program), Vec::<String>::new(), "{} on {ranks} ranks", collective.name);
            }
        }
    }
}

/// What stands between a title and the next backtick: "Hops: `N - 1`".
fn stated<'a>(comment: &'a str, title: &str) -> Option<&'a str> {
    let (_, rest) = comment.split_once(&format!("{title}: `"))?;
    Some(rest.split_once('`')?.0)
}

/// The comment on top of an example states the bytes and hops of a rank by formulas, and whether there could be fewer
/// bytes. A rank alone has no peers, whatever the formulas say.
#[test]
fn examples_cost_what_they_state() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for Example { collective, text } in examples() {
        let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
        let comment = lines.collect::<String>();
        let name = &collective.name;
        let bytes = stated(&comment, "Bytes a rank").unwrap_or_else(|| panic!("{name} states no bytes"));
        let hops = stated(&comment, "Hops").unwrap_or_else(|| panic!("{name} states no hops"));
        let mut least = true;
        for (collective, ranks) in settings(&collective) {
            let report = collective.report(ranks).unwrap();
            let params: Vec<_> = collective.params.iter().map(|p| (&p.name[..], p.value)).collect();
            let shown = format!("{name} on {ranks} ranks, {params:?}");
            let busiest = report.traffic.busiest();
            if ranks == 1 {
                assert_eq!((busiest.over, report.hops.longest), (0, 0), "{shown}");
                continue;
            }
            let nodes = report.shape.nodes;
            let names = |wanted: &str| match wanted {
                "N" => Some(f64::from(ranks)),
                "P" => Some(f64::from(1 << ranks.ilog2())),
                "NODES" => Some(f64::from(nodes)),
                "LOCAL_RANKS" => Some(f64::from(ranks / nodes)),
                _ => params.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value as f64),
            };
            let formula = |text| value(text, &names).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
            for (what, stated, counted) in [
                ("messages", formula(bytes), busiest.value()),
                ("hops", formula(hops), f64::from(report.hops.longest)),
            ] {
                if (stated - counted).abs() > 1e-9 {
                    wrong.push(format!("{shown}: {counted} {what}, not {stated}"));
                }
            }
            least &= report.traffic.bound == Some(busiest);
            compared += 1;
        }
        if comment.contains(", the least there is") != least {
            let says = if least { "could say" } else { "should not say" };
            wrong.push(format!("{name} {says} that there is no less"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(compared > 500, "{compared} worlds");
}

/// The table in the examples' folder names every example with its kind and with what its comment says that it is good for.
#[test]
fn the_readme_lists_the_examples() {
    let readme = include_str!("../../examples/README.md");
    for Example { collective, text } in examples() {
        let lines = text.lines().map_while(|line| line.strip_prefix("//! "));
        let first = lines.collect::<Vec<_>>().join(" ");
        let good = first.split_once(": for ").and_then(|(_, good)| good.strip_suffix('.'));
        let good = good.unwrap_or_else(|| panic!("what is {} good for?", collective.name));
        let row = format!("| [{0}]({0}.rs) | {1} | {good} |", collective.name, collective.kind);
        assert!(readme.lines().any(|line| line == row), "examples/README.md lacks {row}");
    }
}

#[test]
fn formulas_have_the_values_of_arithmetic() {
    let names = |name: &str| (name == "N").then_some(6.0);
    for (text, expected) in [
        ("2 (N - 1) / N", 10.0 / 6.0),
        ("1 + min(N, 4, 5) / 2 - 1", 2.0),
        ("ceil(log2 N) floor(N / 4)", 3.0),
        ("ones(N) / N", 7.0 / 6.0),
    ] {
        assert_eq!(value(text, &names), Ok(expected), "{text}");
    }
    for text in ["", "2 -", "(N", "K", "N)", "min 2"] {
        assert!(value(text, &names).is_err(), "{text}");
    }
}

/// The check above can fail: the ring whose first lap is one hop short leaves every output chunk wrong.
#[test]
fn a_short_ring_is_wrong() {
    let text = include_str!("../../examples/ring_all_reduce.rs").replacen("1..RANKS", "1..RANKS - 1", 1);
    let collective = quadrille_dsl::parse_file("ring.rs", &text).unwrap().remove(0);
    let program = collective.evaluate.program(&collective.setting(8)).unwrap();
    assert_eq!(wrong(&program).len(), 64);
}
