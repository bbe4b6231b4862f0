// The program that compares: for every collective of every file, the compiled body against the evaluator over the
// file's text. Prints what differs; a line `agreed` counts the runs that were equal.

use quadrille::Collective;
use quadrille::compiler::program::ProgramSetting;
use quadrille::compiler::diagnostic::Diagnostics;
use quadrille::compiler::program::Program;

/// Compares the collectives of one file for the world sizes 1 to `largest`.
fn compare(path: &str, text: &str, compiled: Vec<Collective>, largest: u32) -> (usize, usize) {
    let read = match quadrille_dsl::parse_file(path, text) {
        Ok(read) => read,
        Err(findings) => {
            println!("{path}: {findings}");
            return (0, 1);
        }
    };
    let (mut programs, mut refused) = (0, 0);
    for mut compiled in compiled {
        let text = "\n".repeat(compiled.source.first_line as usize - 1) + &compiled.source.text;
        let made_by_a_macro;
        let found = match read.iter().find(|read| read.name == compiled.name) {
            Some(found) => Some(found),
            None => {
                made_by_a_macro = quadrille_dsl::parse_file(path, &text);
                made_by_a_macro.iter().flatten().next()
            }
        };
        let Some(read) = found else {
            println!("{path}: no `{}`", compiled.name);
            continue;
        };
        let said = |c: &Collective| {
            let loc = (c.name_loc.start, c.name_loc.end);
            (c.kind, c.in_place, c.ranks.clone(), c.only, loc, c.root, c.params.clone(), c.schedules.clone())
        };
        if said(&compiled) != said(read) {
            println!("{path}: `{}` is said to be another collective\n{:?}\n{:?}", read.name, said(&compiled), said(read));
        }
        compiled.source = read.source.clone();
        for ranks in 1..=largest {
            let run = |c: &Collective| -> Result<Program, Diagnostics> {
                // Each size with another value of the parameters.
                let all = c.combinations();
                let params = all[ranks as usize % all.len()].clone();
                let program = c.evaluate.program(&ProgramSetting { params, ..c.setting(ranks) });
                // The file's text instead of the fn's alone.
                program
                    .map(|program| Program { source: read.source.clone(), ..program })
                    .map_err(|list| Diagnostics { list, source: Some(read.source.clone()) })
            };
            match (run(read), run(&compiled)) {
                (Ok(a), Ok(b)) if a == b => programs += 1,
                (Err(a), Err(b)) if a == b => refused += 1,
                (a, b) => {
                    let show = |result: Result<Program, Diagnostics>| match result {
                        Ok(program) => program.to_string(),
                        Err(findings) => findings.to_string(),
                    };
                    println!(
                        "{path}: `{}` on {ranks} ranks\nthe evaluator says\n{}\nthe compiled body says\n{}",
                        read.name,
                        show(a),
                        show(b)
                    );
                }
            }
        }
    }
    (programs, refused)
}
