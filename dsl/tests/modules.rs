//! `#[collectives]` modules, whose collectives share fns.

use quadrille_dsl::parse_file;

const RINGS: &str = "\
use quadrille::collectives;

#[collectives]
pub mod rings {
    //! Rings.
    use std::fmt::Debug;

    /// The next rank.
    fn next(r: i64) -> i64 {
        step(r, 1)
    }

    fn step(r: i64, by: i64) -> i64 {
        (r + by) % RANKS
    }

    pub struct Plain<T: Debug>(T);

    /// Not of the language, and nobody there calls it.
    pub fn rust() -> String {
        String::from(\"text\")
    }

    #[collective(send_recv, ranks = 2..=4)]
    pub fn shift() {
        for r in 0..RANKS {
            output[next(r)][0] = input[r][0];
        }
    }

    #[collective(all_gather, ranks = [3], chunks = k, params(k = [1]))]
    #[schedule(protocol = Simple)]
    pub fn direct() {
        for r in 0..RANKS {
            copy(r);
        }
    }

    fn copy(r: i64) {
        output[..][r] = input[r][0];
    }
}
";

#[test]
fn collectives_call_the_fns_beside_them() {
    let found = parse_file("rings.rs", RINGS).unwrap();
    let names: Vec<_> = found.iter().map(|collective| &collective.name[..]).collect();
    assert_eq!(names, ["shift", "direct"]);
    for collective in &found {
        if let Err(findings) = collective.check(&collective.ranks) {
            panic!("{findings}");
        }
    }
    assert_eq!(found[0].program(3).unwrap().ops[2].to_string(), "output[0][0] = input[2][0]");
}

/// A module that is none of collectives shares nothing.
#[test]
fn other_modules_do_not_share() {
    let wrong = parse_file("rings.rs", &RINGS.replacen("#[collectives]", "", 1)).unwrap_err();
    assert_eq!(
        wrong.list[0].plain(),
        "no fn here is called `next` [syntax]\n\
         help: fns are defined inside the collective, or beside it in a `#[collectives]` module"
    );
}

/// What is wrong in a shared fn stands there, once; what a run finds says who called.
#[test]
fn findings_stand_in_the_shared_fn() {
    let text = "#[quadrille::collectives]\nmod m {\n    fn f(c: i64) -> i64 { c + y }\n    fn g(c: i64) -> i64 { k + c }\n    \
                fn never() { loop { y } }\n    \
                #[collective(broadcast, ranks = [2])]\n    fn a() { output[..][f(0)] = input[ROOT][0]; }\n    \
                #[collective(broadcast, ranks = [2], params(k = [1]))]\n    fn b() { output[..][f(0)] = input[ROOT][g(0)]; }\n}";
    let wrong = parse_file("m.rs", text).unwrap_err();
    let found: Vec<_> = wrong.list.iter().map(|f| (f.loc.unwrap().to_string(), f.plain())).collect();
    let one = |place: &str, text: &str| (place.to_owned(), text.to_owned());
    assert_eq!(
        found,
        [
            one("3:31", "nothing here is called `y` [syntax]"),
            one(
                "4:27",
                "`k` is a parameter of one collective, and this fn is shared [syntax]\nhelp: pass it as an argument"
            )
        ]
    );
    let text = "#[collectives]\nmod m {\n    fn f(c: i64) -> i64 {\n        1 / c\n    }\n    \
                #[collective(broadcast, ranks = [2])]\n    fn a() {\n        output[..][f(0)] = input[ROOT][0];\n    }\n}";
    let collective = parse_file("m.rs", text).unwrap().remove(0);
    let wrong = collective.check(&[2]).unwrap_err();
    assert_eq!(wrong.list[0].loc.unwrap().to_string(), "4:9");
    assert_eq!(
        wrong.list[0].plain(),
        "1 / 0 divides by zero [arithmetic]\n  with RANKS = 2\nnote: in `1 / c`, where c = 0\nnote: called at 8:20"
    );
}

/// What the macro leaves of a module, without blanks.
fn left(module: &str) -> String {
    let text = quadrille_dsl::expand_module(Default::default(), module.parse().unwrap()).to_string();
    text.split_whitespace().collect()
}

/// The macro takes what the command line takes, and refuses what it refuses.
#[test]
fn macro_and_command_line_agree() {
    let (_, rings) = RINGS.split_once("#[collectives]").unwrap();
    let text = left(rings);
    assert!(!text.contains("compile_error"), "{text}");
    let parameter = RINGS.replace("output[..][r] = input[r][0]", "output[..][r] = input[r][k - 1]");
    let wrong = parse_file("rings.rs", &parameter).unwrap_err();
    let message = "`k` is a parameter of one collective, and this fn is shared";
    assert!(wrong.list.iter().any(|finding| finding.message == message), "{wrong}");
    let (_, rings) = parameter.split_once("#[collectives]").unwrap();
    let text = left(rings);
    assert!(text.contains("isaparameterofonecollective,andthisfnisshared"), "{text}");
    let sized = RINGS.replace("chunks = k", "chunks = step(0, 1)");
    let wrong = parse_file("rings.rs", &sized).unwrap_err();
    assert_eq!(
        wrong.list[0].plain(),
        "no fn here is called `step` [syntax]\n\
         help: the sizes of the attribute call no fns: write the number out, over `RANKS` and the parameters"
    );
    assert!(left(sized.split_once("#[collectives]").unwrap().1).contains("nofnhereiscalled`step`"));
    // Callers of either find it.
    for name in ["shift", "direct"] {
        assert!(text.contains(&format!("pubfn{name}()->::quadrille::Collective")), "{text}");
    }
}

#[test]
fn misplaced() {
    for (text, expected) in [
        ("#[collectives]\nmod m;", "`#[collectives]` stands on a module whose items are in another file"),
        ("#[collectives(fast)]\nmod m {}", "`#[collectives]` takes no options"),
    ] {
        let wrong = parse_file("m.rs", text).unwrap_err();
        assert_eq!(wrong.list[0].message, expected, "{text}");
    }
}
