//! What the attribute macros leave behind, as rustc compiles it.

#[deny(warnings, reason = "the skeleton of a right body has none")]
mod hostile;
#[deny(warnings, reason = "the skeleton of a right body has none")]
mod made;

use quadrille::Collective;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::Program;

mod plain {
    use quadrille::collective;

    /// A hop to the next rank.
    #[collective(send_recv, ranks = 2..=4, params(k = [1, 2]))]
    #[schedule(protocol = Simple, up_to = "1MiB")]
    #[schedule(protocol = LL)]
    pub(crate) fn shift() {
        for r in 0..RANKS {
            output[(r + 1) % RANKS][0] = input[r][0];
        }
    }
}

#[quadrille::collectives]
mod shared {
    use std::fmt::Display;

    fn next(r: i64) -> i64 {
        (r + 1) % RANKS
    }

    #[collective(send_recv, ranks = 2..=4)]
    pub(crate) fn shift() {
        for r in 0..RANKS {
            output[next(r)][0] = input[r][0];
        }
    }

    /// Rust that no collective calls.
    pub(crate) fn show(value: impl Display) -> String {
        value.to_string()
    }

    /// With a root, in place, and a schedule of its own.
    #[collective(broadcast, ranks = 2..=4, in_place, root = 1)]
    #[schedule(blocks = 4)]
    pub(crate) fn chain() {
        let mut from = ROOT;
        for _ in 1..RANKS {
            data[next(from)][0] = data[from][0];
            from = next(from);
        }
    }
}

fn operations(collective: &Collective) -> String {
    let program = collective.program(3).unwrap();
    program.ops.iter().map(|op| format!("{op}\n")).collect()
}

#[test]
fn a_fn() {
    let shift = plain::shift();
    assert_eq!(
        operations(&shift),
        "output[1][0] = input[0][0]\noutput[2][0] = input[1][0]\noutput[0][0] = input[2][0]\n"
    );
    assert_eq!((shift.params.len(), shift.schedules.len()), (1, 2));
    let large = shift.for_message(2 << 20).options();
    assert_eq!(large.how.protocol.map(|given| given.value), Some(Protocol::Ll));
}

#[test]
fn a_module() {
    assert_eq!(operations(&shared::shift()), operations(&plain::shift()));
    let chain = shared::chain();
    assert_eq!(operations(&chain), "data[2][0] = data[1][0]\ndata[0][0] = data[2][0]\n");
    assert_eq!((chain.root, chain.schedules.len()), (1, 1));
    // The text is this file's.
    let program = chain.program(3).unwrap();
    assert_eq!(program.statements[0].text, "data[next(from)][0] = data[from][0];");
    assert!(chain.name_loc.start.line > shared::shift().name_loc.start.line);
    let line = include_str!("main.rs").lines().nth(program.statements[0].loc.start.line as usize - 1);
    assert_eq!(line.map(str::trim), Some("data[next(from)][0] = data[from][0];"));
    assert_eq!(shared::show(3), "3");
}

/// The body that the macro has left runs as the one that is read from `text`.
fn runs_as_read(left: &Collective, path: &str, text: &str) {
    let read = quadrille_dsl::parse_file(path, text).unwrap_or_else(|findings| panic!("{findings}"));
    let read = read.iter().find(|read| read.name == left.name).expect("a collective of this name");
    assert_eq!(
        (left.name_loc, &left.params, &left.schedules),
        (read.name_loc, &read.params, &read.schedules)
    );
    for ranks in 1..10 {
        let run = |collective: &Collective| {
            let program = collective.evaluate.program(&collective.setting(ranks));
            // The file's text instead of the fn's alone.
            program.map(|program| Program { source: read.source.clone(), ..program })
        };
        assert_eq!(run(left), run(read), "{} on {ranks} ranks", left.name);
    }
}

#[test]
fn names_of_rust_may_mean_something_else() {
    runs_as_read(&hostile::hostile(), "hostile.rs", include_str!("hostile.rs"));
}

#[test]
fn a_fn_without_text_of_its_own() {
    for made in [made::gathers_forwards(), made::gathers_backwards()] {
        let before = "\n".repeat(made.source.first_line as usize - 1);
        runs_as_read(&made, "made.rs", &format!("{before}{}", made.source.text));
        // A group of the macro stays one operand.
        let program = made.program(3).unwrap();
        let text = program.statements[0].text.replace(' ', "");
        assert_eq!(text, "output[..][from]=input[from][0];");
    }
}
