//! Mutants of the device code and of what the emitter makes of a program: each drops or weakens one thing that orders,
//! in the text, and is compiled and run like any kernel, four calls among other kernels, under the memory model. Each is
//! caught: as a race, by a hang, by a wrong result. A table on the standard error says how.

mod rules;
mod run;
mod text;

use quadrille_compiler::options::Protocol;
use rules::{Mutant, mutants};
use run::{NO_KERNEL, Program, Verdict};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::sync::Mutex;
use text::calls;

/// Programs whose own text is mutated in the suite: a ring, with signals one after the other; one with signals to every
/// peer; one with several thread blocks a rank; one through the switch; and by each protocol through slots two chains, whose
/// first rank is held up by nothing but credits: in a ring ranks wait for each other's data before slots are short.
const SUITE: [(&str, u32, Option<Protocol>); 10] = [
    ("ring_all_reduce", 3, None),
    ("two_shot_all_reduce", 3, None),
    ("pairwise_all_to_all", 3, None),
    ("multimem_two_shot_all_reduce", 3, None),
    ("pipelined_chain_broadcast", 3, Some(Protocol::Simple)),
    ("pipelined_chain_broadcast", 3, Some(Protocol::Ll)),
    ("pipelined_chain_broadcast", 3, Some(Protocol::Ll128)),
    ("chain_reduce", 3, Some(Protocol::Simple)),
    ("chain_reduce", 3, Some(Protocol::Ll)),
    ("chain_reduce", 3, Some(Protocol::Ll128)),
];

/// Why a mutant is as good as what ships, where it is; for those alone that nothing has caught.
///
/// - A status record and an abort word are read by the host, or make who reads them leave. They order nothing else.
/// - A barrier between two moves orders nothing where all operands lie alike modulo 16 bytes, as those of one buffer do in
///   place: both moves then give every byte to the same thread. Lowering does not know how operands lie.
/// - A signal that the block repeats later with a greater count: who waits for it waits for the later one then, which
///   publishes as much and more. Whether that ends does not depend on the interleaving.
/// - A wait for a start whose order other waits give as well only compares calls, and those of a chain are alike. Where
///   they are not ([`Program::run_unlike`]) it is missed only by a block that gets ahead of all that find it out.
/// - A credit less than there is to give: the writer has a slot less, and the next message makes up for it.
fn excuse(mutant: &Mutant, in_place: bool) -> Option<&'static str> {
    let Mutant { rule, function, neighbours, .. } = mutant;
    let is_move = |name: &String| name.starts_with("move");
    match function.as_deref() {
        Some("record" | "load_word" | "store_word") => Some("orders nothing"),
        None if in_place && rule == "drop block_sync" && neighbours.iter().all(is_move) => {
            Some("same threads")
        }
        None if !rule.ends_with("one more") && is_repeated(mutant) => Some("said later"),
        None if lacks_start(mutant) => Some("compares calls"),
        None if rule == "signal_data: one less" && gives_credit(mutant) => Some("a slot less"),
        _ => None,
    }
}

/// Whether every link that the mutant does not signal any more is signalled later in the same block, with a greater count.
fn is_repeated(mutant: &Mutant) -> bool {
    let Some(signal) = signals(&mutant.before).next() else { return false };
    let rest = mutant.text.lines().skip(mutant.line as usize).take_while(|line| line.trim() != "break;");
    let later: Vec<(Range<u64>, u64)> = rest.flat_map(signals).collect();
    let (mut links, value) = signal;
    if mutant.rule.ends_with("the last link left out") {
        links.start = links.end - 1;
    }
    links.all(|link| later.iter().any(|(links, greater)| links.contains(&link) && *greater > value))
}

/// The signals for data in a line: links and count.
fn signals(line: &str) -> impl Iterator<Item = (Range<u64>, u64)> {
    calls(line).filter(|call| call.name == "signal_data").filter_map(|call| {
        let number = |argument: usize| call.arguments.get(argument)?.parse::<u64>().ok();
        let (first, count, value) = (number(1)?, number(2)?, number(3)?);
        Some((first..first + count, value))
    })
}

/// Whether the line signals credits.
fn gives_credit(mutant: &Mutant) -> bool {
    let opens = |link: u64| {
        let end = format!("(links[{link} + I],");
        mutant.text.lines().any(|line| line.contains("open_credit_to<") && line.contains(&end))
    };
    signals(&mutant.before).any(|(mut links, _)| links.all(opens))
}

/// Whether the mutant lacks a wait for starts: that wait itself, or the end of a wait for nothing else.
fn lacks_start(mutant: &Mutant) -> bool {
    let previous = (mutant.line as usize).checked_sub(2).and_then(|line| mutant.text.lines().nth(line));
    let compares = |line: &str| line.contains("poll_start") || line.contains("another_call");
    let ends_start = mutant.rule == "drop leave" && previous.is_some_and(compares);
    ends_start || compares(&mutant.before)
}

/// One line of the table.
struct Row {
    program: String,
    in_place: bool,
    mutant: Mutant,
    verdict: Option<Verdict>,
}

impl Row {
    fn survives(&self) -> bool {
        self.verdict.is_none() && excuse(&self.mutant, self.in_place).is_none()
    }
}

/// What the rules make of a text, in brief.
#[test]
fn every_rule_finds_its_place() {
    let device = r#"
__device__ u64 load_acquire(u64 a) { asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(w) : "l"(a)); }
__device__ void order() { asm volatile("fence.proxy.alias; membar.sys;" ::: "memory"); }
__device__ void packet(u64 a) { asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(a)); }
__device__ bool behind(u64 a, u64 b) { return static_cast<long long>((a - b) << 3) < 0; }
__device__ void poll(const Link* links, u32 count, u32 value, u32 thread) { load_acquire(links[0].base + value); }
__device__ void signal(const Link* links, u32 count, u32 value) { asm("st.release.sys.u32 [%0], 1;"); }
__device__ void sync() { __syncthreads(); }
__device__ bool join(bool b) { return __syncthreads_or(b); }  // not here: __syncwarp();
__device__ void keep(const Link* links) { store(links); }
__device__ void move(u64 a) { *a = 1; }
"#;
    let kernel = "void k() {
  poll(links, 2, 7, 3);
  // a comment
  move(1);
  sync();
  signal(links, 1, 4);
  if (join(x)) return;
  keep(links);
}
";
    let found = mutants(&[device, kernel].concat(), device.len());
    let told: Vec<String> = found.iter().map(|mutant| format!("{}: {}", mutant.line, mutant.rule)).collect();
    let expected = "\
2: .acquire -> .relaxed|2: .gpu -> .cta|2: to a weak access|3: drop the instruction|3: drop the instruction|\
3: .sys -> .gpu|3: .sys -> .cta|4: .sys -> .gpu|4: .sys -> .cta|4: to a weak access|\
5: compare by < without regard to the wrap|6: drop `+ value`|7: .release -> .relaxed|7: .sys -> .gpu|7: .sys -> .cta|\
7: to a weak access|8: drop __syncthreads|9: drop __syncthreads_or|13: drop poll|13: poll: the last link left out|\
13: poll: one less|16: drop sync|16: signal before sync|17: drop signal|17: signal: the last link left out|\
17: signal: one more|17: signal: one less|18: drop join|19: drop keep";
    assert_eq!(told.join("|"), expected);
    let text = |rule: &str| &found.iter().find(|mutant| mutant.rule == rule).unwrap().text;
    assert!(text("signal before sync").contains("signal(links, 1, 4);\nsync();"));
    assert!(text("drop join").contains("if ((x)) return;"));
    assert!(text("to a weak access").contains("\"ld.global.u64 "));
    let sync = found.iter().find(|mutant| mutant.rule == "drop sync").unwrap();
    assert_eq!(sync.neighbours, ["move", "signal"]);
    assert_eq!((sync.function.as_deref(), found[0].function.as_deref()), (None, Some("load_acquire")));
}

#[test]
fn no_mutant_of_the_device_code_survives() {
    let programs: Vec<Program> =
        SUITE.map(|(name, ranks, staged)| Program::new(name, ranks, staged, None)).into();
    // One FIFO from rank to rank, with several messages a tile; whose credits come all at once, so that one more or less of
    // its own is none.
    let others = [Program::new("pipelined_chain_broadcast", 3, Some(Protocol::Ll), Some(1))];
    judge(&programs, &others, SEEDS);
}

#[test]
#[ignore = "takes ten minutes: the text of every program is mutated, or of the one that QUADRILLE_PROGRAM names"]
fn no_mutant_of_any_program_survives() {
    let mut programs = Program::all(&[3, 4]);
    if let Ok(name) = std::env::var("QUADRILLE_PROGRAM") {
        programs.retain(|program| program.name == name);
    }
    judge(&programs, &[], 3 * SEEDS);
}

/// Interleavings that a mutant is tried under before its excuse counts, and eight times as many before it counts as survivor.
const SEEDS: u64 = 8;

/// Runs all mutants: of device code on any of the programs and `others`, of a program's own text on itself.
fn judge(programs: &[Program], others: &[Program], seeds: u64) {
    for program in programs.iter().chain(others) {
        // What is not mutated is right: a verdict is the mutation's.
        for seed in 0..seeds {
            let text = &program.cuda.text;
            let verdict = program.run(text, seed).or_else(|| program.run_unlike(text, seed));
            assert!(verdict.is_none(), "{}, seed {seed}: {}", program.name, verdict.unwrap_or_default());
        }
    }
    let mut work = Vec::new();
    // Most device code is the same in all texts, line for line, and one program alone need not need all of it.
    let mut known = HashSet::new();
    for (number, program) in programs.iter().enumerate() {
        for mutant in mutants(&program.cuda.text, program.cuda.device_bytes) {
            let key = (mutant.line, mutant.rule.clone(), mutant.before.clone());
            if mutant.function.is_none() || programs.len() > 1 && known.insert(key) {
                work.push((number, mutant));
            }
        }
    }
    assert!(work.len() > 5, "the rules find {} mutants", work.len());
    let work = Mutex::new(work.into_iter());
    let rows = Mutex::new(Vec::new());
    let next = || work.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((number, mutant)) = next() {
                    let row = tried((programs, others), number, mutant, seeds);
                    rows.lock().unwrap().push((number, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by(|(a, x), (b, y)| {
        (a, x.mutant.line, &x.mutant.rule).cmp(&(b, y.mutant.line, &y.mutant.rule))
    });
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    // Not by the macro: the table is shown whether the test passes or not.
    let _ = std::io::stderr().write_all(table(&rows).as_bytes());
    let failed = |row: &&Row| row.verdict.as_deref().is_some_and(|verdict| verdict.starts_with(NO_KERNEL));
    assert_eq!(rows.iter().filter(failed).count(), 0, "the rules make texts that do not compile");
    let survivors = rows.iter().filter(|row| row.survives()).count();
    assert_eq!(survivors, 0, "mutants survive; see the table");
}

fn tried((programs, others): (&[Program], &[Program]), number: usize, mutant: Mutant, seeds: u64) -> Row {
    let own = &programs[number];
    let in_device = mutant.function.is_some();
    // Up to the end of the changed line.
    let changed: usize = own.cuda.text.split_inclusive('\n').take(mutant.line as usize).map(str::len).sum();
    let start = &own.cuda.text[..changed];
    let longer = mutant.text.len() as isize - own.cuda.text.len() as isize;
    let mutated_start = &mutant.text[..changed.saturating_add_signed(longer)];
    let excused = excuse(&mutant, own.shape.in_place).is_some();
    for seed in 0..if excused { seeds } else { 8 * seeds } {
        // Device code that others have, too.
        let alike = programs.iter().chain(others).filter(|program| match in_device {
            true => program.device().starts_with(start),
            false => std::ptr::eq(*program, own),
        });
        for program in alike {
            let text = match in_device {
                true => [mutated_start, &program.cuda.text[changed..]].concat(),
                false => mutant.text.clone(),
            };
            let verdict = program.run(&text, seed);
            if let Some(verdict) = verdict {
                let (name, in_place) = (program.name.clone(), program.shape.in_place);
                return Row { program: name, in_place, mutant, verdict: Some(verdict) };
            }
        }
    }
    // What compares calls is needed where they differ. Who goes on needs luck to be ahead of those who find it out.
    let is_start = !in_device && lacks_start(&mutant);
    let unlike = |seed| is_start.then(|| own.run_unlike(&mutant.text, seed)).flatten();
    let verdict = (0..8 * seeds).find_map(unlike);
    Row { program: own.name.clone(), in_place: own.shape.in_place, mutant, verdict }
}

fn table(rows: &[Row]) -> String {
    let mut table = String::new();
    for row in rows {
        let Row { program, in_place, mutant, verdict } = row;
        let Mutant { rule, line, before, function, .. } = mutant;
        let how = match (verdict, excuse(mutant, *in_place)) {
            (Some(verdict), _) => verdict.clone(),
            (None, Some(why)) => format!("equivalent: {why}"),
            (None, None) => "SURVIVES".to_owned(),
        };
        let place = function.as_deref().unwrap_or("the kernel");
        let _ = writeln!(table, "{program:<20} {rule:<44} {how:<28} {place}, line {line}: {before}");
    }
    let count = |what: &str| {
        rows.iter().filter(|row| row.verdict.as_deref().is_some_and(|v| v.starts_with(what))).count()
    };
    let _ = writeln!(
        table,
        "{} mutants: {} races, {} hangs, {} wrong results, {} others, {} not caught",
        rows.len(),
        count("race"),
        count("hang"),
        count("wrong"),
        rows.iter().filter(|row| row.verdict.is_some()).count()
            - count("race")
            - count("hang")
            - count("wrong"),
        rows.iter().filter(|row| row.verdict.is_none()).count()
    );
    table
}
