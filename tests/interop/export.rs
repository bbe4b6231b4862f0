//! Programs as MSCCL XML: what is written is proved, comes back equal, and gives exact results.

use super::{run, world};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostics};
use quadrille_compiler::interop::msccl::{self, Runtime};
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_runtime::nvrtc;
use quadrille_testing::Pattern;
use std::path::Path;

/// Every collective of the examples and of tests/programs.
fn programs() -> Vec<Collective> {
    let mut all = Vec::new();
    for folder in ["examples", "tests/programs"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "rs")) {
            all.extend(parsed(&std::fs::read_to_string(file).unwrap()));
        }
    }
    all
}

fn parsed(text: &str) -> Vec<Collective> {
    quadrille_dsl::parse_file("program.rs", text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn only(text: &str) -> Collective {
    parsed(text).remove(0)
}

fn imported(text: &str, root: u32) -> Collective {
    msccl::import("plan.xml", text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}")).rooted(root)
}

fn schedule(plan: &Collective) -> String {
    let domain = plan.domain(plan.ranks[0]);
    plan.verified(&domain).unwrap_or_else(|wrong| panic!("{wrong}")).to_string()
}

/// The value of an attribute of `algo`.
fn attribute<'t>(text: &'t str, name: &str) -> &'t str {
    let from = text.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
    &text[from..][..text[from..].find('"').unwrap()]
}

#[test]
fn what_is_exported_is_imported_equal() {
    let (mut exported, mut refused) = (0, Vec::new());
    for collective in programs() {
        let sizes = [2, 3, 4, 6, 8].into_iter().filter(|n| collective.ranks.contains(n));
        for ranks in sizes {
            match msccl::export(&collective, ranks, Runtime::Rccl) {
                Ok(file) => {
                    let back = imported(&file.text, collective.root);
                    assert_eq!(schedule(&file.plan), schedule(&back), "{}", file.text);
                    for in_place in [true, false] {
                        let name = if in_place { "inplace" } else { "outofplace" };
                        let way = back.called(in_place);
                        assert_eq!(attribute(&file.text, name) == "1", way.program(ranks).is_ok(), "{name}");
                    }
                    exported += 1;
                }
                Err(wrong) => {
                    assert!(wrong.list.iter().all(|f| f.check == Check::Unsupported), "{wrong}");
                    refused.push(collective.name.clone());
                }
            }
        }
    }
    refused.dedup();
    let known = [
        "all_to_next",
        "chain_send_recv",
        "multimem_all_gather",
        "multimem_broadcast",
        "multimem_one_shot_all_reduce",
        "multimem_reduce_scatter",
        "multimem_two_shot_all_reduce",
        "channelled_reduce",
        "halo_exchange",
        "inclusive_scan",
        "staged_ring_all_reduce",
    ];
    assert_eq!(refused, known);
    assert!(exported > 100, "{exported}");
}

#[test]
fn exported_files_give_exact_results() {
    nvrtc::provide(nvrtc::announce).unwrap_or_else(|error| panic!("{error}"));
    let names = [
        "bruck_all_to_all",
        "detouring_scatter",
        "direct_gather",
        "double_binary_tree_all_reduce",
        "one_shot_all_reduce",
        "recursive_halving_reduce_scatter",
        "ring_all_gather",
        "torus_all_reduce",
        "two_shot_all_reduce",
    ];
    let programs = programs();
    for name in names {
        let collective = programs.iter().find(|collective| collective.name == name).unwrap();
        let file = msccl::export(collective, 4, Runtime::Rccl).unwrap_or_else(|wrong| panic!("{wrong}"));
        for plan in super::ways(&imported(&file.text, collective.root)) {
            let world = world(&plan, None);
            for shift in 0..4 {
                run(&plan, &world, 700, DType::F32, RedOp::Sum, Pattern::OneHot { shift });
            }
            run(&plan, &world, 7, DType::Bf16, RedOp::Sum, Pattern::Dense { shift: 1 });
            super::run_checked(&plan, 150, 1);
        }
    }
}

#[test]
fn the_protocol_and_the_sizes_are_those_of_the_schedule() {
    let with = |schedules: &str| {
        only(&format!(
            "#[collective(all_reduce, ranks = [4], chunks = RANKS)] {schedules}\n\
             fn two_shot() {{ for c in 0..RANKS {{ #[on(c)] output[..][c] = reduce(input[..][c]); }} }}"
        ))
    };
    let said = |collective: &Collective| {
        let text = msccl::export(collective, 4, Runtime::Rccl).unwrap_or_else(|wrong| panic!("{wrong}")).text;
        ["proto", "minBytes", "maxBytes"].map(|name| attribute(&text, name).to_owned())
    };
    assert_eq!(said(&with("")), ["Simple", "0", "0"]);
    let two = with("#[schedule(protocol = LL, up_to = \"64KiB\")] #[schedule(protocol = LL128)]");
    assert_eq!(said(&two), ["LL", "0", "65536"]);
    assert_eq!(said(&two.with_schedule(1)), ["LL128", "65537", "0"]);
    // What is left open is chosen as lowering does.
    let open =
        with("#[schedule(up_to = \"4KiB\")] #[schedule(up_to = \"1GiB\")] #[schedule(protocol = LL128)]");
    assert_eq!(said(&open), ["LL", "0", "4096"]);
    assert_eq!(said(&open.with_schedule(1)), ["Simple", "4097", "1073741824"]);
}

fn refused(collective: &Collective, ranks: u32, runtime: Runtime) -> Vec<String> {
    match msccl::export(collective, ranks, runtime) {
        Ok(file) => panic!("nothing is refused: {}", file.text),
        Err(Diagnostics { list, .. }) => list
            .iter()
            .map(|finding| {
                assert_eq!(finding.check, Check::Unsupported, "{finding:?}");
                assert!(finding.loc.is_some(), "{finding:?}");
                format!("{} {}", finding.message, finding.notes.join(" "))
            })
            .collect(),
    }
}

#[test]
fn what_a_file_cannot_say_is_refused_all_at_once() {
    let much = only(
        "#[collective(custom, ranks = [4])]\n\
         #[schedule(transport = put, tile = 64, threads = 64, unroll = 2, instances = 2)]\n\
         fn f() { for r in 0..RANKS { expect!(output[r][0] == input[r][0]); #[block(2)] output[r][0] = input[r][0]; } }",
    );
    let found = refused(&much, 4, Runtime::Rccl);
    let says =
        ["kind custom", "`instances`", "`threads`", "`tile`", "`unroll`", "transport put", "`#[block(..)]`"];
    assert_eq!(found.len(), says.len(), "{found:#?}");
    for (found, says) in found.iter().zip(says) {
        assert!(found.contains(says), "{says}: {found}");
    }
    let mixed = only(
        "#[collective(broadcast, ranks = [2], chunks = 2)] #[schedule(slots = 2, transport = staged)]\n\
         fn f() { #[schedule(protocol = LL)] output[..][0] = input[ROOT][0]; output[..][1] = input[ROOT][1]; }",
    );
    let found = refused(&mixed, 2, Runtime::Rccl);
    assert!(
        found.len() == 2 && found[0].contains("`slots`") && found[1].contains("different protocols"),
        "{found:?}"
    );
    let foreign = std::fs::read_to_string(Path::new(super::FOLDER).join("all_gather.xml")).unwrap();
    let found = refused(&imported(&foreign, 0), 2, Runtime::Rccl);
    assert!(found[0].contains("is an imported plan"), "{found:?}");
}

#[test]
fn limits_of_the_runtimes() {
    let chain = |chunks: u32| {
        only(&format!(
            "#[collective(broadcast, ranks = [2], chunks = {chunks}, in_place)] fn f() {{ \
             for c in 0..{chunks} {{ data[1][c] = data[0][c]; }} }}"
        ))
    };
    msccl::export(&chain(64), 2, Runtime::Rccl).unwrap_or_else(|wrong| panic!("{wrong}"));
    let found = refused(&chain(65), 2, Runtime::Rccl);
    assert!(found[0].contains("tb 0 needs 65 steps") && found[0].contains("RCCL runs 64"), "{found:?}");
    msccl::export(&chain(256), 2, Runtime::Msccl).unwrap_or_else(|wrong| panic!("{wrong}"));
    let found = refused(&chain(257), 2, Runtime::Msccl);
    assert!(found[0].contains("tb 0 needs 257 steps") && found[0].contains("MSCCL runs 256"), "{found:?}");

    let pairs = |ranks: u32| {
        only(&format!(
            "#[collective(all_gather, ranks = [{ranks}])] fn f() {{ \
             for r in 0..RANKS {{ output[..][r] = input[r][0]; }} }}"
        ))
    };
    let found = refused(&pairs(40), 40, Runtime::Rccl);
    assert!(
        found[0].contains("thread blocks on channel 0") && found[0].contains("32 a channel"),
        "{found:?}"
    );
    let found = refused(&pairs(80), 80, Runtime::Rccl);
    assert!(found[0].contains("needs 80 thread blocks"), "{found:?}");
    let channels = only(
        "#[collective(broadcast, ranks = [2], chunks = 33, in_place)] fn f() { \
         for c in 0..33 { #[channel(c)] data[1][c] = data[0][c]; } }",
    );
    let found = refused(&channels, 2, Runtime::Msccl);
    assert!(found[0].contains("needs 33 channels"), "{found:?}");
    let long = only(
        "#[collective(broadcast, ranks = [2], chunks = 4352, in_place)] fn f() { \
         for c in 0..4352 { #[channel(c % 17)] data[1][c] = data[0][c]; } }",
    );
    let found = refused(&long, 2, Runtime::Msccl);
    assert!(found[0].contains("needs 4372 elements") && found[0].contains("reads 4096"), "{found:?}");
}

/// A chunk that passes a rank twice, from the same peer to two others: no thread block sends to both, so that the rank sends
/// by a step of its own what it has received.
#[test]
fn chains_that_part_are_cut() {
    let twice = only(
        "#[collective(broadcast, ranks = [4], in_place, scratch = 1)] fn f() { \
         data[1][0] = data[0][0]; data[2][0] = data[1][0]; scratch[0][0] = data[2][0]; \
         scratch[1][0] = scratch[0][0]; data[3][0] = scratch[1][0]; }",
    );
    let file = msccl::export(&twice, 4, Runtime::Rccl).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(schedule(&file.plan), schedule(&imported(&file.text, 0)));
    assert!(ends(&file.text, 2));
    let second = file.text.split("<gpu").nth(2).unwrap();
    assert_eq!(second.matches("recv=\"0\"").count(), 1, "{second}");
    let types: Vec<&str> = second.split("<step").skip(1).map(|step| attribute(step, "type")).collect();
    assert!(types.contains(&"rcs") && types.contains(&"s"), "{types:?}");
}

/// Where what is sent later is needed first, it goes on another channel: connections keep the order.
#[test]
fn messages_do_not_overtake_each_other() {
    // Rank 0 has its own chunk at once and rank 2's later; rank 1 adds that first.
    let crossed = only(
        "#[collective(all_reduce, ranks = [3], in_place, scratch = 1)] fn f() { \
         scratch[0][0] = data[2][0]; scratch[1][0] = scratch[0][0]; data[1][0] += scratch[1][0]; \
         data[1][0] += data[0][0]; data[0][0] = data[1][0]; data[2][0] = data[1][0]; }",
    );
    let file = msccl::export(&crossed, 3, Runtime::Rccl).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(schedule(&file.plan), schedule(&imported(&file.text, 0)));
    assert!(ends(&file.text, 2));
    assert_eq!(attribute(&file.text, "nchannels"), "2", "{}", file.text);
}

/// A thread block of a file: its GPU, its peers, its channel, and for each step what it does and what it waits for.
struct Tb {
    gpu: i64,
    send: i64,
    receive: i64,
    channel: i64,
    steps: Vec<(String, i64, i64)>,
}

fn number(text: &str, name: &str) -> i64 {
    attribute(text, name).parse().unwrap()
}

/// Runs the steps of a file with so much room on each connection; whether all come to their end.
fn ends(text: &str, room: usize) -> bool {
    let mut tbs = Vec::new();
    for gpu in text.split("<gpu").skip(1) {
        for tb in gpu.split("<tb").skip(1) {
            let step =
                |step| (attribute(step, "type").to_owned(), number(step, "depid"), number(step, "deps"));
            let steps = tb.split("<step").skip(1).map(step).collect();
            let [send, receive, channel] = ["send", "recv", "chan"].map(|name| number(tb, name));
            tbs.push(Tb { gpu: number(gpu, "id"), send, receive, channel, steps });
        }
    }
    let mut done = vec![0; tbs.len()];
    let mut on_their_way = std::collections::HashMap::<_, usize>::new();
    let first = |gpu| tbs.iter().position(|tb| tb.gpu == gpu).unwrap();
    loop {
        let mut moved = false;
        for (number, tb) in tbs.iter().enumerate() {
            while let Some((kind, block, due)) = tb.steps.get(done[number]) {
                let waits = *block >= 0 && done[first(tb.gpu) + *block as usize] as i64 <= *due;
                let (from, to) = ((tb.receive, tb.gpu, tb.channel), (tb.gpu, tb.send, tb.channel));
                let receives = kind.starts_with('r') && kind != "re";
                let sends = ["s", "rcs", "rrs", "rrcs"].contains(&kind.as_str());
                let held = |wire| on_their_way.get(wire).copied().unwrap_or(0);
                if waits || (receives && held(&from) == 0) || (sends && held(&to) == room) {
                    break;
                }
                if receives {
                    *on_their_way.entry(from).or_default() -= 1;
                }
                if sends {
                    *on_their_way.entry(to).or_default() += 1;
                }
                done[number] += 1;
                moved = true;
            }
        }
        if !moved {
            return tbs.iter().zip(&done).all(|(tb, done)| tb.steps.len() == *done);
        }
    }
}

/// By Simple, RCCL has room for two messages of a connection, by LL and LL128 for eight.
#[test]
fn no_connection_holds_more_than_its_runtime_has_room_for() {
    let exchange = |protocol: &str| {
        only(&format!(
            "#[collective(all_gather, ranks = [2], chunks = 20)] #[schedule(protocol = {protocol}, transport = staged)] \
             fn f() {{ for c in 0..20 {{ output[1][c] = input[0][c]; output[0][20 + c] = input[1][c]; \
             output[0][c] = input[0][c]; output[1][20 + c] = input[1][c]; }} }}"
        ))
    };
    for (protocol, room) in [("Simple", 2), ("LL", 8), ("LL128", 8)] {
        let file =
            msccl::export(&exchange(protocol), 2, Runtime::Rccl).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(ends(&file.text, room), "{}", file.text);
    }
    for collective in programs() {
        let ranks = collective.ranks[0].max(4);
        if let Ok(file) = msccl::export(&collective, ranks, Runtime::Rccl) {
            assert!(ends(&file.text, 2), "{}", file.text);
        }
    }
}

/// Where a sum is due that one of its later sources holds, it is made elsewhere.
#[test]
fn sums_that_are_stored_to_a_source() {
    let last = only(
        "#[collective(all_reduce, ranks = [3], in_place)] fn f() { \
         data[0][0] = data[1][0] + data[2][0] + data[0][0]; data[1][0] = data[0][0]; data[2][0] = data[0][0]; }",
    );
    let second = only(
        "#[collective(all_reduce, ranks = [2], scratch = 1)] fn f() { for r in 0..2 { \
         scratch[r][0] = input[1 - r][0]; output[r][0] = input[r][0]; output[r][0] = scratch[r][0] + output[r][0]; } }",
    );
    let middle = only(
        "#[collective(all_reduce, ranks = [3], in_place)] fn f() { \
         data[1][0] = data[0][0] + data[1][0] + data[2][0]; data[0][0] = data[1][0]; data[2][0] = data[1][0]; }",
    );
    for (collective, ranks) in [(last, 3), (second, 2), (middle, 3)] {
        let file = msccl::export(&collective, ranks, Runtime::Rccl).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(schedule(&file.plan), schedule(&imported(&file.text, 0)));
    }
}
