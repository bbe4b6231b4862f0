//! Random programs: whatever the machine shows, the axioms must allow.

use quadrille_vgpu::Stale;

use super::axioms::allowed;
use super::machine::Program;

/// A source of random numbers for programs: xorshift (Marsaglia, "Xorshift RNGs").
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }
}

/// Two to four threads of a few instructions on two or three locations; every write has a value of its own.
fn program(number: u64) -> Vec<(String, String)> {
    let mut dice = Dice(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..20 {
        dice.below(2);
    }
    let threads = 2 + dice.below(3);
    let locations = &["x", "y", "z"][..2 + dice.below(2)];
    // Some programs keep to one scope and strong accesses, so that much of them is in order.
    let scopes: &[&str] = if dice.below(2) == 0 { &["sys"] } else { &["cta", "gpu", "sys"] };
    let mixed = dice.below(2) == 0;
    let mut value = 0;
    let (mut places, mut program) = (Vec::new(), Vec::new());
    while places.len() < threads {
        let spread = [1, 2][dice.below(2)];
        let place = format!("{}.{}.{}.{}", dice.below(spread), dice.below(2), dice.below(2), dice.below(2));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let most = if threads == 2 { 5 } else { 4 };
    for place in places {
        let mut lines = Vec::new();
        let mut results = 0;
        for _ in 0..1 + dice.below(most) {
            let (scope, location) = (dice.one(scopes), dice.one(locations));
            let weak = mixed && dice.below(4) == 0;
            let line = match dice.below(8) {
                0..=2 => {
                    value += 1;
                    let order = dice.one(&["relaxed", "relaxed", "release"]);
                    match (weak, dice.below(6)) {
                        (true, _) => format!("st.weak [{location}], {value}"),
                        (_, 0) => format!("st.volatile [{location}], {value}"),
                        _ => format!("st.{order}.{scope} [{location}], {value}"),
                    }
                }
                3..=5 if results < 6 => {
                    results += 1;
                    let register = results - 1;
                    let order = dice.one(&["relaxed", "relaxed", "acquire"]);
                    match (weak, dice.below(6)) {
                        (true, _) => format!("ld.weak r{register}, [{location}]"),
                        (_, 0) => format!("ld.volatile r{register}, [{location}]"),
                        _ => format!("ld.{order}.{scope} r{register}, [{location}]"),
                    }
                }
                6 if results < 6 => {
                    results += 1;
                    let order = dice.one(&["relaxed", "acquire", "release", "acq_rel"]);
                    let (op, operand) = match dice.below(2) {
                        0 => {
                            value += 1;
                            ("exch", value)
                        }
                        _ => ("add", 100),
                    };
                    format!("atom.{order}.{scope}.{op} r{}, [{location}], {operand}", results - 1)
                }
                _ => format!("fence.{}.{scope}", dice.one(&["acq_rel", "sc", "sc", "acquire", "release"])),
            };
            lines.push(line);
        }
        program.push((place, lines.join("; ")));
    }
    program
}

fn check(programs: std::ops::Range<u64>, seeds: u64) -> Vec<String> {
    let mut failures = Vec::new();
    for number in programs {
        let text = program(number);
        let threads: Vec<(&str, &str)> = text.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let program = Program::new(&threads);
        for stale in [Stale::All, Stale::Strong] {
            for (outcome, (_, seed)) in program.outcomes(stale, 0..seeds) {
                if allowed(&program, &outcome) != Some(true) {
                    failures.push(format!(
                        "program {number}, seed {seed}, {stale:?}: {:?}, last {:?} of {:?}\n{text:#?}",
                        outcome.results, outcome.last, program.locations
                    ));
                }
            }
        }
    }
    failures
}

#[test]
fn what_the_machine_shows_the_axioms_allow() {
    let failures = check(0..400, 40);
    assert!(
        failures.is_empty(),
        "{} outcomes:\n{}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
}

#[test]
#[ignore = "takes minutes"]
fn what_the_machine_shows_the_axioms_allow_at_length() {
    let failures = check(300..20_000, 100);
    assert!(
        failures.is_empty(),
        "{} outcomes:\n{}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
}
