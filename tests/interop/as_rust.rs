//! Plans as Rust: what is written is proved, and computes the same, operation for operation.

use super::{FOLDER, PUBLISHED, PUBLISHED_JSON, files, parsed, run, world};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::interop;
use quadrille_compiler::options::ScheduleOptions;
use quadrille_compiler::program::Program;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::ids::{Buffer, Location};
use quadrille_runtime::nvrtc;
use quadrille_testing::Pattern;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

fn read(text: &str) -> Collective {
    quadrille_dsl::parse_file("made.rs", text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}")).remove(0)
}

/// What every output chunk holds, as a number that tells the order in which sums were made and rounded.
fn results(program: &Program) -> Vec<Option<u64>> {
    let mut memory: HashMap<Location, u64> = HashMap::new();
    let shape = program.shape;
    let hash = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        hasher.finish()
    };
    for rank in (0..shape.ranks).map(quadrille_compiler::program::ids::Rank) {
        for buffer in Buffer::ALL {
            for chunk in 0..shape.chunks(buffer, rank) {
                let at = Location { buffer, rank, chunk };
                if let Some(given) = shape.initial(at) {
                    memory.insert(at, hash(&|hasher| (given.rank, given.chunk).hash(hasher)));
                }
            }
        }
    }
    for op in &program.ops {
        let values: Vec<u64> = (0..op.sources[0].len)
            .map(|chunk| {
                let read: Vec<u64> = op.sources.iter().map(|source| memory[&source.at(chunk)]).collect();
                if let [value] = read[..] { value } else { hash(&|hasher| read.hash(hasher)) }
            })
            .collect();
        for dest in &op.dests {
            memory.extend(dest.locations().zip(values.iter().copied()));
        }
    }
    shape.outputs().map(|(rank, chunk)| memory.get(&shape.output_location(rank, chunk)).copied()).collect()
}

/// The plan as Rust, which computes the same.
fn rewritten(plan: &Collective, options: &ScheduleOptions, named: bool) -> (String, Collective) {
    let ranks = plan.ranks[0];
    let program = plan.program(ranks).unwrap_or_else(|wrong| panic!("{wrong}"));
    let text = interop::rust(&program, options, named).unwrap_or_else(|wrong| panic!("{wrong}"));
    let made = read(&text);
    let again = made.program(ranks).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    let shape = quadrille_compiler::program::kind::Shape { scratch: 0, nodes: 1, ..program.shape };
    assert_eq!(quadrille_compiler::program::kind::Shape { scratch: 0, ..again.shape }, shape, "{text}");
    assert_eq!((again.divisible, again.in_flight), (program.divisible, None), "{text}");
    assert_eq!(results(&again), results(&program), "{text}");
    assert!(made.only && made.ranks == [ranks], "{text}");
    (text, made)
}

#[test]
fn plans_as_rust_compute_the_same() {
    nvrtc::provide(nvrtc::announce).unwrap_or_else(|error| panic!("{error}"));
    let files = [files(FOLDER, "xml"), files(FOLDER, "json")].concat();
    assert!(files.len() >= 19);
    for file in &files {
        let plan = parsed(&std::fs::read_to_string(file).unwrap());
        let (_, made) = rewritten(&plan, &plan.options(), true);
        assert_eq!(
            made.options().how.protocol.map(|p| p.value),
            plan.options().how.protocol.map(|p| p.value)
        );
        let world = world(&made, None);
        for shift in 0..made.ranks[0] {
            run(&made, &world, 700, DType::F32, RedOp::Sum, Pattern::OneHot { shift });
        }
        run(&made, &world, 7, DType::Bf16, RedOp::Sum, Pattern::Dense { shift: 1 });
    }
}

/// All of them can be said, with blocks that lowering finds.
#[test]
#[ignore = "takes a minute, and files that are not in the repository"]
fn published_plans_as_rust_compute_the_same() {
    let files = [files(PUBLISHED, "xml"), files(PUBLISHED_JSON, "json")].concat();
    if files.is_empty() {
        println!("skipped: there is no folder {PUBLISHED}");
    }
    for file in &files {
        println!("{}", file.display());
        let plan = parsed(&std::fs::read_to_string(file).unwrap());
        let few = plan.options().blocks.map(|given| quadrille_compiler::options::Given { value: 5, ..given });
        let (text, made) = rewritten(&plan, &ScheduleOptions { blocks: few, ..plan.options() }, false);
        made.verified(&made.domain(made.ranks[0])).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    }
}

/// Programs that were not imported, too: they name no block, and their statements store to several ranks.
#[test]
fn examples_as_rust_compute_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut written = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let example = read(&std::fs::read_to_string(&path).unwrap());
        let ranks = if example.ranks.contains(&4) { 4 } else { example.ranks[0] };
        let example = Collective { ranks: vec![ranks], ..example };
        if example.kind == quadrille_compiler::program::kind::Kind::Custom {
            let program = example.program(ranks).unwrap();
            let wrong = interop::rust(&program, &example.options(), true).unwrap_err();
            assert!(wrong.to_string().contains("is of kind custom"), "{wrong}");
            continue;
        }
        rewritten(&example, &example.options(), true);
        written += 1;
    }
    assert!(written > 30, "{written}");
}

fn step(s: usize, kind: &str, source: (&str, u32), dest: (&str, u32), count: u32) -> String {
    format!(
        "<step s=\"{s}\" type=\"{kind}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{count}\"/>",
        source.0, source.1, dest.0, dest.1
    )
}

fn file(name: &str, chunks: u32, scratch: u32, steps: [&str; 2]) -> Collective {
    let gpu = |(id, steps): (usize, &str)| {
        let peer = 1 - id;
        format!(
            "<gpu id=\"{id}\" i_chunks=\"{chunks}\" o_chunks=\"{chunks}\" s_chunks=\"{scratch}\">\
             <tb id=\"0\" send=\"{peer}\" recv=\"{peer}\" chan=\"0\">{steps}</tb></gpu>"
        )
    };
    let gpus: String = steps.into_iter().enumerate().map(gpu).collect();
    parsed(&format!(
        "<algo name=\"{name}\" proto=\"LL\" nchunksperloop=\"{chunks}\" ngpus=\"2\" coll=\"allreduce\" inplace=\"1\">\
         {gpus}</algo>"
    ))
}

/// What is received is read where it came from, as long as it lies there.
#[test]
fn messages_become_direct_statements_where_their_sources_last() {
    let both = ("i", 0);
    // Both send, then both add: the first sum overwrites what the second still needs.
    let exchange = step(0, "s", both, both, 1) + &step(1, "rrc", both, both, 1);
    let (text, _) =
        rewritten(&file("swap", 1, 0, [&exchange, &exchange]), &ScheduleOptions::default(), false);
    assert!(text.contains("scratch = 1"), "{text}");
    assert_eq!(text.matches(" += data[").count() + text.matches(" += scratch[").count(), 2, "{text}");

    // One after the other needs none.
    let sends = step(0, "s", both, both, 1) + &step(1, "r", both, both, 1);
    let adds = step(0, "rrcs", both, both, 1);
    let (text, _) = rewritten(&file("match", 1, 0, [&sends, &adds]), &ScheduleOptions::default(), false);
    let body: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("pub fn")).collect();
    assert_eq!(
        body,
        ["pub fn match_plan() {", "    data[1][0] += data[0][0];", "    data[0][0] = data[1][0];", "}"]
    );
}

#[test]
fn runs_of_chunks_are_ranges_and_constant_steps_loops() {
    let whole = step(0, "s", ("i", 0), ("i", 0), 6) + &step(1, "r", ("i", 0), ("i", 0), 6);
    let (text, _) = rewritten(
        &file("ranges", 6, 0, [&whole, &step(0, "rrcs", ("i", 0), ("i", 0), 6)]),
        &ScheduleOptions::default(),
        false,
    );
    assert!(text.contains("data[1][0..6] += data[0][0..6];"), "{text}");
    // Every second chunk, the last one first.
    let odd = |s: usize| 5 - 2 * s as u32;
    let (send, back): (String, String) = (
        (0..3).map(|s| step(s, "s", ("i", odd(s)), ("i", odd(s)), 1)).collect(),
        (0..3).map(|s| step(s + 3, "r", ("i", odd(s)), ("i", odd(s)), 1)).collect(),
    );
    let even = |s: usize| 2 * s as u32;
    let (send_even, back_even): (String, String) = (
        (0..3).map(|s| step(s + 6, "s", ("i", even(s)), ("i", even(s)), 1)).collect(),
        (0..3).map(|s| step(s + 9, "r", ("i", even(s)), ("i", even(s)), 1)).collect(),
    );
    let adds: String = (0..6)
        .map(|s| {
            let chunk = if s < 3 { odd(s) } else { even(s - 3) };
            step(s, "rrcs", ("i", chunk), ("i", chunk), 1)
        })
        .collect();
    let plan = file("loops", 6, 0, [&(send + &back + &send_even + &back_even), &adds]);
    let (text, _) = rewritten(&plan, &ScheduleOptions::default(), false);
    for says in
        ["for i in 0..3 {", "data[1][5 - 2 * i] += data[0][5 - 2 * i];", "data[1][2 * i] += data[0][2 * i];"]
    {
        assert!(text.contains(says), "{says}: {text}");
    }
    let (text, _) = rewritten(&plan, &plan.options(), true);
    assert!(
        text.contains("#[block(0)]") && text.contains("protocol = LL, transport = staged, blocks = 1"),
        "{text}"
    );
}

/// Chunks that are handed on one by one are no range, since a statement reads before it stores; a range of scratch may hold
/// chunks of two units.
#[test]
fn ranges_mean_what_single_chunks_mean() {
    let shifting = read(
        "#[collective(broadcast, ranks = [2], chunks = 4, in_place, divisible)] fn f() { \
         data[1][0] = data[0][0]; data[1][1] = data[1][0]; data[1][2] = data[1][1]; data[1][3] = data[1][2]; \
         data[1][0..4] = data[0][0..4]; }",
    );
    let (text, _) = rewritten(&shifting, &ScheduleOptions::default(), true);
    assert!(text.contains("for i in 0..3 {"), "{text}");
    let units = read(
        "#[collective(all_to_all, ranks = [2], chunks = 2, scratch = 4)] fn f() { for r in 0..2 { \
         for c in 0..4 { scratch[r][c] = input[r][c]; } \
         for to in 0..2 { for c in 0..2 { output[to][2 * r + c] = scratch[r][2 * to + c]; } } } }",
    );
    rewritten(&units, &ScheduleOptions::default(), true);
}
