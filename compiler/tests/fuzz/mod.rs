//! Texts that were right once, damaged: byte by byte, word by word, and by numbers beyond reason. Whatever a parser is given,
//! it ends soon, does not panic, and has a line and a column for what it refuses. A case follows from its number, so that one
//! that fails can be run again.
//!
//! Each format is a [`Format`]; the loop is one. `cargo test --release -p quadrille-compiler --test all fuzz -- --ignored` goes on
//! for `QUADRILLE_FUZZ_SECONDS` (60) for each.

mod damage;
mod msccl;
mod mscclpp;
mod schedule;

use damage::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Most time for one text, without optimization and on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Cases of the suite, for each format.
const CASES: u64 = 1500;

/// A text form and what reads it.
struct Format {
    /// Right texts.
    texts: Vec<String>,
    /// Words that are worth putting anywhere.
    words: &'static [&'static str],
    /// Whether a text is read; where it is refused, with a place. An error of this is a defect.
    read: fn(&str) -> Result<bool, String>,
}

/// Judges one case; whether it was read.
fn case(format: &Format, number: u64) -> bool {
    let mut random = Random::new(number);
    let text = damage::damaged(&format.texts[random.below(format.texts.len())], format.words, &mut random);
    let start = Instant::now();
    let read = catch_unwind(AssertUnwindSafe(|| (format.read)(&text)));
    let took = start.elapsed();
    assert!(took < PATIENCE, "case {number} takes {took:?}\n{text}");
    match read {
        Ok(Ok(read)) => read,
        Ok(Err(problem)) => panic!("case {number}: {problem}\n{text}"),
        Err(_) => panic!("case {number} panics\n{text}"),
    }
}

/// The right texts, then `cases` damaged ones.
fn fuzz(format: &Format, cases: u64) {
    for text in &format.texts {
        assert_eq!((format.read)(text), Ok(true), "{text}");
    }
    let read = (0..cases).filter(|&number| case(format, number)).count() as u64;
    println!("{read} of {cases} are read");
    // Damage that every text survives, or none, would test nothing.
    assert!(read > cases / 100 && read < cases * 9 / 10, "{read} of {cases} are read");
}

/// Damaged texts until the time is over.
fn fuzz_on(format: &Format) {
    let seconds = std::env::var("QUADRILLE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let (start, time) = (Instant::now(), Duration::from_secs(seconds.unwrap_or(60)));
    let mut number = CASES;
    while start.elapsed() < time {
        case(format, number);
        number += 1;
    }
    println!("{} cases", number - CASES);
}
