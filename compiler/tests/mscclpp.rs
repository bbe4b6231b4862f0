//! MSCCL++ JSON: what plans mean, and what is wrong with those that are.

use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostic, Diagnostics, SourceFile};
use quadrille_compiler::interop::msccl::Runtime;
use quadrille_compiler::interop::{self, ExecutorVerdict, mscclpp};
use quadrille_compiler::program::dtype::{DType, RedOp};

const RING: &str = include_str!("../../tests/interop/ring_signals.json");
const PACKETS: &str = include_str!("../../tests/interop/packets.json");
const FORWARDED: &str = include_str!("../../tests/interop/forwarded_packets.json");
const SEMAPHORES: &str = include_str!("../../tests/interop/semaphores.json");
const GROUPS: &str = include_str!("../../tests/interop/groups.json");
const PIPELINE: &str = include_str!("../../tests/interop/pipeline.json");
const SWITCH: &str = include_str!("../../tests/interop/switch.json");
const STORE: &str = include_str!("../../tests/interop/switch_store.json");
const PORTS: &str = include_str!("../../tests/interop/ports.json");
const ALL: [&str; 9] = [RING, PACKETS, FORWARDED, SEMAPHORES, GROUPS, PIPELINE, SWITCH, STORE, PORTS];

/// What a whole proof of a plan gives.
fn prove(text: &str) -> Result<String, Diagnostics> {
    let collective = mscclpp::import("plan.json", text)?;
    let ranks = collective.ranks[0];
    collective.report(ranks)?;
    let domain = collective.domain(ranks);
    let schedule = collective.verified(&domain)?.to_string();
    let op = if text.contains("\"max\"") { RedOp::Max } else { RedOp::Sum };
    collective.kernel(&domain, DType::F32, op)?;
    Ok(schedule)
}

#[track_caller]
fn good(text: &str) -> Collective {
    prove(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    mscclpp::import("plan.json", text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[track_caller]
fn wrong(text: &str) -> Vec<Diagnostic> {
    match prove(text) {
        Ok(schedule) => panic!("nothing is found wrong with\n{text}\n{schedule}"),
        Err(Diagnostics { list, source }) => {
            assert!(source.is_some());
            list
        }
    }
}

/// The text with the first `from` in it replaced.
#[track_caller]
fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "there is no {from}");
    text.replacen(from, to, 1)
}

/// Asserts that all findings of a plan are of a check, that one of them stands on a line with `on` in it, and says something.
#[track_caller]
fn rejected(text: &str, check: Check, on: &str, says: &str) {
    let list = wrong(text);
    let texts: Vec<_> = list.iter().map(Diagnostic::plain).collect();
    assert!(list.iter().all(|found| found.check == check), "{texts:#?}");
    let stands = |found: &Diagnostic| {
        let line = found.loc.and_then(|loc| text.lines().nth(loc.start.line as usize - 1));
        line.is_some_and(|line| line.contains(on)) && found.plain().contains(says)
    };
    assert!(list.iter().any(stands), "{texts:#?}\nnone on {on} that says {says}");
}

/// A plan of two GPUs that are connected by two channels in memory and one by port. Remote buffers 0 to 2 of each sort are
/// the peer's input, output and scratch; there are two semaphores, 0 at first, and a switch channel for input and for scratch.
fn pair(coll: &str, proto: &str, [i, o, s]: [u32; 3], blocks: impl Fn(u32) -> Vec<Vec<String>>) -> String {
    let gpu = |id: u32| {
        let peer = 1 - id;
        let block = |(number, ops): (usize, Vec<String>)| {
            format!(
                "{{\"id\": {number}, \"channels\": [{{\"channel_type\": \"memory\", \"channel_ids\": [0, 1]}}, \
                 {{\"channel_type\": \"port\", \"channel_ids\": [0]}}, \
                 {{\"channel_type\": \"switch\", \"channel_ids\": [0, 1]}}],\n\
                 \"remote_buffer_refs\": [{{\"access_channel_type\": \"memory\", \"remote_buffer_ids\": [0, 1, 2]}}, \
                 {{\"access_channel_type\": \"port\", \"remote_buffer_ids\": [0, 1, 2]}}], \"ops\": [\n{}\n]}}",
                ops.join(",\n")
            )
        };
        let remote = ["i", "o", "s"].map(|buffer| {
            format!("{{\"rank\": {peer}, \"type\": \"{buffer}\", \"access_channel_types\": [\"memory\", \"port\"]}}")
        });
        let switch = ["i", "s"].map(|buffer| {
            format!(
                "{{\"channel_type\": \"switch\", \"buffer_type\": \"{buffer}\", \
                 \"rank_groups\": [{{\"size\": 2, \"ranks\": [0, 1]}}]}}"
            )
        });
        format!(
            "{{\"id\": {id}, \"input_chunks\": {i}, \"output_chunks\": {o}, \"scratch_chunks\": {s},\n\
             \"channels\": [{{\"channel_type\": \"memory\", \"connected_to\": [{peer}, {peer}]}}, \
             {{\"channel_type\": \"port\", \"connected_to\": [{peer}]}}, {}],\n\
             \"remote_buffers\": [{}],\n\"semaphores\": [{{\"init_value\": 0}}, {{\"init_value\": 0}}],\n\
             \"threadblocks\": [\n{}]}}",
            switch.join(", "),
            remote.join(", "),
            blocks(id).into_iter().enumerate().map(block).collect::<Vec<_>>().join(",\n")
        )
    };
    format!(
        "{{\"name\": \"pair\", \"collective\": \"{coll}\", \"protocol\": \"{proto}\", \"inplace\": true,\n\
         \"gpus\": [\n{},\n{}]}}\n",
        gpu(0),
        gpu(1)
    )
}

/// In-place all-reduce of one chunk.
fn reduce(ops: impl Fn(u32) -> Vec<String>) -> String {
    pair("allreduce", "Simple", [1, 1, 2], |gpu| vec![ops(gpu)])
}

fn nop() -> String {
    "{\"name\": \"nop\"}".to_owned()
}

fn on(name: &str, channel: u32) -> String {
    format!("{{\"name\": \"{name}\", \"channel_ids\": [{channel}], \"channel_type\": \"memory\"}}")
}

fn semaphore(name: &str, id: u32) -> String {
    format!("{{\"name\": \"{name}\", \"semaphore_ids\": [{id}]}}")
}

fn local(buffer: &str, index: u32) -> String {
    format!("{{\"type\": \"{buffer}\", \"index\": {index}, \"size\": 1}}")
}

fn remote(buffer: u32, index: u32) -> String {
    format!("{{\"buffer_id\": {buffer}, \"index\": {index}, \"size\": 1}}")
}

fn switch(channel: u32, index: u32) -> String {
    format!("{{\"switch_channel_id\": {channel}, \"index\": {index}, \"size\": 1}}")
}

fn moves(name: &str, channel: &str, from: &[String], to: &[String]) -> String {
    format!(
        "{{\"name\": \"{name}\", \"src_buff\": [{}], \"dst_buff\": [{}], \"channel_type\": \"{channel}\"}}",
        from.join(", "),
        to.join(", ")
    )
}

/// The peer's scratch chunk 0 gets the input.
fn put() -> String {
    moves("put", "memory", &[local("i", 0)], &[remote(2, 0)])
}

/// What came there is added.
fn add() -> String {
    moves("re", "memory", &[local("i", 0), local("s", 0)], &[local("i", 0)])
}

#[test]
fn plans_are_proved() {
    for text in ALL {
        good(text);
    }
    let right = reduce(|_| vec![put(), nop(), on("signal", 0), on("wait", 0), nop(), add()]);
    good(&right);
}

#[test]
fn operations_follow_the_file() {
    let program = good(PACKETS).program(3).unwrap();
    let of = |word: &str| -> Vec<String> {
        let named = |op: &&quadrille_compiler::program::Op| {
            program.statements[op.statement.0 as usize].text.contains(word)
        };
        program.ops.iter().filter(named).map(ToString::to_string).collect()
    };
    assert_eq!(of("\"ppkt\"").len(), 6);
    // Packets come first, then what is plain; the result is kept and sent to both peers.
    let sums = of("\"respkt\"");
    assert!(sums.contains(
        &"data[0][0], scratch[1][2], scratch[2][2] = scratch[0][0] + scratch[0][1] + data[0][0] on r0 block 1"
            .to_owned()
    ), "{sums:?}");
    // Two groups of thread blocks make two parts of every chunk.
    assert_eq!(good(GROUPS).program(2).unwrap().shape.chunks, 2);
    let schedule = prove(PIPELINE).unwrap();
    assert!(schedule.lines().next().unwrap().contains("tile 1024"), "{schedule}");
    // A packet that its own thread block reads is kept in scratch; every other read is a message.
    let program = good(FORWARDED).program(3).unwrap();
    assert_eq!((program.shape.scratch, program.in_flight), (5, Some(4)), "{program}");
    let schedule = prove(SWITCH).unwrap();
    assert!(schedule.contains("reduce multimem data[..][0] -> multimem data[..][0]"), "{schedule}");
    let schedule = prove(STORE).unwrap();
    assert!(schedule.contains("copy input[0][0] -> multimem output[..][0]"), "{schedule}");
}

#[test]
fn wrong_results() {
    let none = |_: u32| Vec::new();
    rejected(&reduce(none), Check::Postcondition, "\"name\": \"pair\"", "are never stored");
    let ready = || vec![put(), nop(), on("signal", 0), on("wait", 0), nop()];
    let twice = moves("re", "memory", &[local("i", 0), local("s", 0), local("s", 0)], &[local("i", 0)]);
    let text = reduce(|_| [ready(), vec![twice.clone()]].concat());
    rejected(&text, Check::Postcondition, "\"name\": \"re\"", "twice");
    // One offset is reduced, another one stored to.
    let glres = |to| moves("glres", "switch", &[switch(0, 0)], &[switch(0, to)]);
    let text = |to| {
        pair("allreduce", "Simple", [2, 2, 0], move |gpu| {
            let all = [glres(to), moves("glres", "switch", &[switch(0, 1)], &[switch(0, 1 - to)])];
            vec![vec![all[gpu as usize].clone()]]
        })
    };
    good(&text(0));
    assert!(
        wrong(&text(1)).iter().all(|found| [Check::DataRace, Check::Postcondition].contains(&found.check))
    );
    // Of one GPU alone: no race, and a wrong place.
    let alone =
        pair("allreduce", "Simple", [2, 2, 0], |gpu| vec![if gpu == 0 { vec![glres(1)] } else { vec![] }]);
    assert!(wrong(&alone).iter().all(|found| found.check == Check::Postcondition));
    let unwritten = reduce(|_| vec![add()]);
    rejected(&unwritten, Check::ReadBeforeWrite, "\"name\": \"re\"", "scratch");
}

#[test]
fn missing_order_is_a_race() {
    let race = |text: &str, at: &str, says: &str| rejected(text, Check::DataRace, at, says);
    // The reduction before its wait.
    race(
        &reduce(|_| vec![put(), nop(), on("signal", 0), add(), on("wait", 0), nop()]),
        "\"name\": ",
        "nothing orders",
    );
    // No barrier between the wait and who needs it, or between the move and its signal.
    race(&reduce(|_| vec![put(), nop(), on("signal", 0), on("wait", 0), add()]), "\"re\"", "`nop`");
    race(&reduce(|_| vec![put(), on("signal", 0), on("wait", 0), nop(), add()]), "\"re\"", "`nop`");
    // One thread block waits, another reduces.
    let apart = |meet: bool| {
        pair("allreduce", "Simple", [1, 1, 1], move |_| {
            let barrier = "{\"name\": \"barrier\", \"barrier_id\": 3, \"num_threadblocks\": 2}".to_owned();
            let barrier = || meet.then(|| barrier.clone());
            let one = [put(), nop(), on("signal", 0), on("wait", 0)].into_iter().chain(barrier()).collect();
            vec![one, barrier().into_iter().chain([add()]).collect()]
        })
    };
    good(&apart(true));
    race(&apart(false), "\"re\"", "gpu 0, tb 1");
    // A relaxed signal, or a relaxed wait, orders nothing.
    for (signal, wait) in [("rlxsignal", "wait"), ("signal", "rlxwait")] {
        let text = reduce(|_| vec![put(), nop(), on(signal, 0), on(wait, 0), nop(), add()]);
        race(&text, "\"re\"", "nothing orders the store of scratch");
    }
    // Signals of two thread blocks on one channel: the first wait may be for either.
    let two = |waits: usize| {
        pair("allreduce", "Simple", [1, 1, 2], move |_| {
            let sum = moves("re", "memory", &[local("i", 0), local("s", 0)], &[local("i", 0)]);
            let wait = || vec![on("wait", 0), nop()];
            let after = if waits == 1 { [vec![sum], wait()].concat() } else { [wait(), vec![sum]].concat() };
            vec![
                [vec![put(), nop(), on("signal", 0)], wait(), after].concat(),
                vec![moves("put", "memory", &[local("i", 0)], &[remote(2, 1)]), nop(), on("signal", 0)],
            ]
        })
    };
    race(&two(1), "\"re\"", "nothing orders the store of scratch");
    let list = wrong(&two(2));
    assert!(list.iter().all(|f| f.check == Check::DataRace && f.message.contains("data[")), "{list:?}");
    // A packet reduction of what has just been stored.
    let fresh = |sync: bool| {
        pair("allreduce", "LL", [1, 1, 4], move |_| {
            let send = moves("ppkt", "memory", &[local("i", 0)], &[remote(2, 0)]);
            let keep = moves("copy", "memory", &[local("i", 0)], &[local("s", 3)]);
            let sum = moves("repkt", "memory", &[local("s", 3), local("s", 0)], &[local("i", 0)]);
            let sync = sync.then(nop);
            vec![[send, keep].into_iter().chain(sync).chain([sum]).collect()]
        })
    };
    good(&fresh(true));
    race(&fresh(false), "\"repkt\"", "another thread");
    // What is stored before a packet is not there when the packet is.
    let before = pair("allreduce", "LL", [1, 1, 4], |_| {
        let plain = moves("put", "memory", &[local("i", 0)], &[remote(2, 3)]);
        let send = moves("ppkt", "memory", &[local("i", 0)], &[remote(2, 0)]);
        let take = moves("upkt", "memory", &[local("s", 0)], &[local("s", 2)]);
        let sum = moves("re", "memory", &[local("i", 0), local("s", 3)], &[local("i", 0)]);
        vec![vec![plain, nop(), send, take, nop(), sum]]
    });
    race(&before, "\"re\"", "by gpu 1, tb 0 and the read by gpu 0, tb 0");
    let twice = moves("ppkt", "memory", &[local("i", 0), local("i", 0)], &[remote(2, 0), remote(2, 0)]);
    let text = pair("allreduce", "LL", [1, 1, 1], |_| vec![vec![twice.clone()]]);
    race(&text, "\"ppkt\"", "stored twice");
}

#[test]
fn reads_before_packets_may_be_overwritten_after_them() {
    // What is sent as packets is overwritten by another thread block with what they came back as.
    let schedule = prove(PACKETS).unwrap();
    assert!(schedule.contains("signal data r0.b2"), "{schedule}");
    let early = with(
        PACKETS,
        "{\"name\": \"upkt\", \"src_buff\": [{\"type\": \"s\", \"index\": 2",
        "{\"name\": \"copy\", \"src_buff\": [{\"type\": \"i\", \"index\": 2",
    );
    let list = wrong(&early);
    assert!(list.iter().any(|found| found.check == Check::DataRace), "{list:?}");
}

#[test]
fn waits_that_nothing_ends() {
    let reject = |text: &str, at: &str, says: &str| rejected(text, Check::Deadlock, at, says);
    let both = reduce(|_| vec![on("wait", 0), on("signal", 0)]);
    reject(&both, "\"wait\"", "gpu 0, tb 0 and gpu 1, tb 0 wait for each other");
    let other = reduce(|_| vec![on("signal", 0), on("wait", 1)]);
    reject(&other, "\"wait\"", "waits for ever for memory channel 1 from gpu 1 to gpu 0");
    let held = reduce(|_| vec![semaphore("sem_acquire", 1)]);
    reject(&held, "\"sem_acquire\"", "waits for ever for semaphore 1 of gpu 0");
    let barrier = "{\"name\": \"barrier\", \"barrier_id\": 0, \"num_threadblocks\": 2}".to_owned();
    reject(&reduce(|_| vec![barrier.clone()]), "\"barrier\"", "1 of gpu 0 come to it");
    let never = pair("allreduce", "LL", [1, 1, 1], |_| {
        vec![vec![moves("upkt", "memory", &[local("s", 0)], &[local("i", 0)])]]
    });
    reject(&never, "\"upkt\"", "nobody stores them");
}

#[test]
fn counters_end_as_they_began() {
    let more = reduce(|_| vec![on("signal", 0), on("wait", 0), on("signal", 0)]);
    rejected(&more, Check::Invariant, "\"signal\"", "raised 1 time more often");
    let kept =
        with(&reduce(|_| vec![semaphore("sem_acquire", 0)]), "{\"init_value\": 0}", "{\"init_value\": 1}");
    let list =
        wrong(&with(&kept, "\"semaphores\": [{\"init_value\": 0}", "\"semaphores\": [{\"init_value\": 1}"));
    assert!(
        list.iter().all(|f| f.check == Check::Invariant && f.message.contains("never released")),
        "{list:?}"
    );
    let shared = pair("allreduce", "Simple", [1, 1, 1], |_| {
        vec![vec![on("signal", 0), on("wait", 0)], vec![on("signal", 0), on("wait", 0)]]
    });
    rejected(&shared, Check::Unsupported, "\"wait\"", "several thread blocks wait for memory channel 0");
}

#[test]
fn what_is_wrong_elsewhere_and_right_here() {
    // Reductions by the file's operator alone.
    let max = SWITCH.replace("\"sum\"", "\"max\"");
    let plan = good(&max);
    let refused = plan.kernel(&plan.domain(3), DType::F32, RedOp::Sum).unwrap_err();
    assert_eq!(refused.list[0].check, Check::Requirement);
    assert!(refused.to_string().contains("the plan combines by max, and the call by sum"), "{refused}");
    good(SWITCH).kernel(&plan.domain(3), DType::F32, RedOp::Avg).unwrap();
    // The source of a put by port is overwritten without a flush: the thread block itself has read it by then.
    let text = pair("allreduce", "Simple", [1, 1, 1], |_| {
        let put = moves("put", "port", &[local("i", 0)], &[remote(2, 0)]);
        let port = |name: &str| on(name, 0).replace("memory", "port");
        vec![vec![put, port("signal"), port("wait"), nop(), add()]]
    });
    good(&text);
    // 24 peers in one thread block.
    let ranks = 25;
    let gpu = |id: usize| {
        let peers: Vec<usize> = (0..ranks).filter(|&peer| peer != id).collect();
        let listed = |each: &dyn Fn(usize) -> String| (0..24).map(each).collect::<Vec<_>>().join(", ");
        format!(
            "{{\"id\": {id}, \"input_chunks\": 1, \"output_chunks\": 1, \"scratch_chunks\": 0, \
             \"channels\": [{{\"channel_type\": \"memory\", \"connected_to\": {peers:?}}}], \
             \"remote_buffers\": [{}], \"semaphores\": [], \"threadblocks\": [{{\"id\": 0, \"channels\": [], \
             \"remote_buffer_refs\": [{{\"access_channel_type\": \"memory\", \"remote_buffer_ids\": [{}]}}], \
             \"ops\": [{{\"name\": \"rre\", \"channel_type\": \"memory\", \"dst_buff\": [{}], \"src_buff\": [{}, {}]}}]}}]}}",
            listed(&|i| format!(
                "{{\"rank\": {}, \"type\": \"i\", \"access_channel_types\": [\"memory\"]}}",
                peers[i]
            )),
            listed(&|i| i.to_string()),
            local("o", 0),
            local("i", 0),
            listed(&|i| remote(i as u32, 0)),
        )
    };
    let gpus: Vec<String> = (0..ranks).map(gpu).collect();
    good(&format!(
        "{{\"name\": \"wide\", \"collective\": \"allreduce\", \"protocol\": \"Simple\", \"gpus\": [{}]}}",
        gpus.join(",\n")
    ));
}

/// The verdict on MSCCL++'s own executor.
fn executed(text: &str) -> ExecutorVerdict {
    let source = SourceFile { path: "plan.json".into(), first_line: 1, text: text.into() };
    interop::executed(&source, Runtime::Msccl).unwrap()
}

/// Asserts that Quadrille proves a plan, and that its own executor has findings of one check that say something.
#[track_caller]
fn wrong_elsewhere(text: &str, check: Check, says: &str) {
    good(text);
    let found = executed(text).findings;
    let right = |finding: &Diagnostic| finding.check == check && finding.plain().contains(says);
    assert!(!found.is_empty() && found.iter().all(right), "{says}: {found:#?}");
}

#[track_caller]
fn right_elsewhere(text: &str) {
    good(text);
    let found = executed(text).findings;
    assert!(found.is_empty(), "{found:#?}");
}

/// Every GPU reduces its half of a buffer on both, between `start` and `exit` of its thread block.
fn halves(start: &[String], exit: &[String]) -> String {
    pair("allreduce", "Simple", [2, 2, 0], |id| {
        let both = [local("i", id), remote(0, id)];
        let sum = moves("rres", "memory", &both, &both);
        vec![[start, &[sum], exit].concat()]
    })
}

#[test]
fn kernels_begin_and_end() {
    let met = |signal: &str, wait: &str| vec![nop(), on(signal, 0), on(wait, 0), nop()];
    let (relaxed, strict) = (met("rlxsignal", "rlxwait"), met("signal", "wait"));
    right_elsewhere(&halves(&relaxed, &strict));
    wrong_elsewhere(&halves(&[], &strict), Check::EntryExit, "before the kernel of gpu");
    wrong_elsewhere(&halves(&relaxed, &[]), Check::EntryExit, "may end before gpu");
    wrong_elsewhere(&halves(&relaxed, &relaxed), Check::EntryExit, "that is not relaxed");
    // Through the switch relaxed signals are enough.
    let switched = |exit: &[String]| {
        pair("allreduce", "Simple", [2, 2, 0], |id| {
            let both = [switch(0, id)];
            vec![[&relaxed[..], &[moves("glres", "switch", &both, &both)], exit].concat()]
        })
    };
    right_elsewhere(&switched(&relaxed));
    wrong_elsewhere(&switched(&[]), Check::EntryExit, "may end before gpu");
    // Scratch is used by the next call again.
    let once = |end: &[String]| {
        reduce(|_| [&[put(), nop(), on("signal", 0), on("wait", 0), nop(), add()], end].concat())
    };
    wrong_elsewhere(&once(&[]), Check::DataRace, "in the call before");
    right_elsewhere(&once(&relaxed_then_strict()));
    // Packets too, unless they lie in two halves in turn. The same threads read a chunk and store it.
    let packets = |double: bool| {
        let text = pair("allreduce", "LL", [1, 1, 1], |_| {
            let send = moves("ppkt", "memory", &[local("i", 0)], &[remote(2, 0)]);
            let sum = moves("repkt", "memory", &[local("i", 0), local("s", 0)], &[local("i", 0)]);
            vec![vec![send, sum]]
        });
        with(
            &text,
            "\"inplace\": true",
            &format!("\"inplace\": true, \"use_double_scratch_buffer\": {double}"),
        )
    };
    right_elsewhere(&packets(true));
    wrong_elsewhere(&packets(false), Check::DataRace, "in the call before");
}

/// Signals and waits that order everything, behind a barrier of the block.
fn relaxed_then_strict() -> Vec<String> {
    vec![nop(), on("signal", 0), on("wait", 0), nop()]
}

#[test]
fn puts_by_port_go_on() {
    let port = |name: &str| on(name, 0).replace("memory", "port");
    let text = |flush: bool| {
        reduce(|_| {
            let put = moves("put", "port", &[local("i", 0)], &[remote(2, 0)]);
            let put = put.replace("\"channel_type\"", "\"channel_ids\": [0], \"channel_type\"");
            // A port knows no relaxed signals.
            let met = [port("rlxsignal"), port("rlxwait"), nop()];
            let flush: Vec<String> = flush.then(|| port("flush")).into_iter().collect();
            [&met[..], &[put, port("signal")], &flush, &[port("wait"), nop(), add()]].concat()
        })
    };
    wrong_elsewhere(&text(false), Check::DataRace, "a put by port goes on by itself");
    right_elsewhere(&text(true));
    assert!(executed(&text(true)).remarks[0].contains("`flush`"));
    // A port, and a switch, copy packets as they lie there.
    let gather = |name: &str, channel: &str, to: String| {
        pair("allgather", "LL", [1, 2, 2], |id| {
            let send = moves(name, channel, &[local("o", id)], std::slice::from_ref(&to));
            let take = moves("upkt", "memory", &[local("s", 1 - id)], &[local("o", 1 - id)]);
            vec![vec![send], vec![take]]
        })
    };
    rejected(&gather("ppkt", "port", remote(2, 0)), Check::Form, "ppkt", "`ppkt` has packets there");
    rejected(
        &gather("gstorepkt", "switch", switch(1, 0)),
        Check::Form,
        "gstorepkt",
        "`gstorepkt` has packets",
    );
    let forwarded = |sync: &[String]| {
        let text = pair("allgather", "LL", [1, 2, 2], |id| {
            let keep = moves("cpkt", "memory", &[local("o", id)], &[local("s", id)]);
            let send = moves("ppkt", "port", &[local("s", id)], &[remote(2, id)]);
            let send = send.replace("\"channel_type\"", "\"channel_ids\": [0], \"channel_type\"");
            let take = moves("upkt", "memory", &[local("s", 1 - id)], &[local("o", 1 - id)]);
            vec![[&[keep], sync, &[send, take]].concat()]
        });
        with(&text, "\"inplace\": true", "\"inplace\": true, \"use_double_scratch_buffer\": true")
    };
    right_elsewhere(&forwarded(&[nop()]));
    wrong_elsewhere(&forwarded(&[]), Check::DataRace, "nothing orders the store of packets");
}

#[test]
fn what_mscclpp_executes_otherwise() {
    let strict = relaxed_then_strict();
    let started = halves(&strict, &strict);
    // The rank of a local source, and scratch that plans share, are what its plans say.
    let ranked = started.replace("\"type\": \"i\", \"index\"", "\"type\": \"i\", \"rank\": 0, \"index\"");
    right_elsewhere(&ranked);
    let reuse = with(PACKETS, "\"inplace\": true", "\"inplace\": true, \"reuse_resources\": true");
    good(&reuse);
    let remarks = executed(&reuse).remarks;
    assert!(remarks.iter().any(|remark| remark.contains("64 MiB")), "{remarks:?}");
    let max = started
        .replace("\"channel_type\": \"memory\"}", "\"channel_type\": \"memory\", \"reduce_op\": \"max\"}");
    let max = max.replace(
        "[0], \"channel_type\": \"memory\", \"reduce_op\": \"max\"}",
        "[0], \"channel_type\": \"memory\"}",
    );
    wrong_elsewhere(&max, Check::Translation, "adds in MSCCL++");
    let many = |ops: usize| halves(&[&strict[..], &vec![nop(); ops - 9]].concat(), &strict);
    right_elsewhere(&many(64));
    wrong_elsewhere(&many(65), Check::Unsupported, "65 operations, and MSCCL++'s executor takes 64");
    let barrier = |id: u32| {
        let meet = format!("{{\"name\": \"barrier\", \"barrier_id\": {id}, \"num_threadblocks\": 1}}");
        halves(&[&strict[..], &[meet]].concat(), &strict)
    };
    right_elsewhere(&barrier(15));
    wrong_elsewhere(&barrier(16), Check::Unsupported, "has barriers 0 to 15");
    let channels = |count: usize| {
        let ids = |of: usize| (0..of).map(|_| "0".to_owned()).collect::<Vec<_>>().join(", ");
        let list = "{\"channel_type\": \"memory\", \"channel_ids\": [0, 1]}";
        started.replace(list, &format!("{{\"channel_type\": \"memory\", \"channel_ids\": [{}]}}", ids(count)))
    };
    right_elsewhere(&channels(16));
    wrong_elsewhere(
        &channels(17),
        Check::Unsupported,
        "17 channels in memory, and MSCCL++'s executor takes 16",
    );
}

#[test]
fn copies_over_two_ranks_stay_two_as_rust() {
    let plan = good(FORWARDED);
    let text = interop::rust(&plan.program(3).unwrap(), &plan.options(), true).unwrap();
    // Rank 1 passes on what rank 0 has sent to it, and rank 2 reads it there.
    for says in ["scratch[1][1] = scratch[0][0];", "output[2][0] = scratch[1][1];"] {
        assert!(text.contains(says), "{says}: {text}");
    }
}

#[test]
fn findings_name_the_chunks_of_groups() {
    let says = "into 2 parts: chunk c here is part c % 2 of the plan's chunk c / 2";
    let other = with(GROUPS, "{\"type\": \"i\", \"index\": 1", "{\"type\": \"i\", \"index\": 0");
    let unordered = with(GROUPS, "{\"name\": \"barrier\", \"barrier_id\": 1, \"num_threadblocks\": 2},", "");
    let unordered =
        with(&unordered, "{\"name\": \"barrier\", \"barrier_id\": 1, \"num_threadblocks\": 2},", "");
    for text in [other, unordered] {
        let list = wrong(&text);
        assert!(list.iter().all(|found| found.plain().contains(says)), "{list:#?}");
    }
    assert!(executed(GROUPS).findings.iter().all(|found| found.plain().contains(says)));
}

#[test]
fn what_cannot_be_carried_out() {
    let simple = with(PACKETS, "\"LL\"", "\"Simple\"");
    rejected(&simple, Check::Form, "pkt", "packets in a plan of protocol Simple");
    let mixed = with(
        PACKETS,
        "\"dst_buff\": [{\"type\": \"i\", \"index\": 1",
        "\"dst_buff\": [{\"type\": \"s\", \"index\": 1",
    );
    assert!(wrong(&mixed).iter().any(|f| f.check == Check::Form && f.message.contains("lie in chunk 1")));
    rejected(
        &with(RING, "\"allreduce\"", "\"custom\""),
        Check::Unsupported,
        "custom",
        "`custom` cannot be imported",
    );
    let crossing = with(PIPELINE, "{\"name\": \"sem_acquire\", \"semaphore_ids\": [0]},\n", "");
    let first = crossing.find("{\"id\": 1, \"channels\": []").unwrap();
    let at = first + crossing[first..].find("{\"name\": \"pipeline\"").unwrap();
    let crossing = format!(
        "{}{{\"name\": \"sem_acquire\", \"semaphore_ids\": [0]}},\n{}",
        &crossing[..at],
        &crossing[at..]
    );
    rejected(&crossing, Check::Unsupported, "sem_release", "is not raised and waited for alike");
    let unit = PIPELINE.replace("\"unit_size\": 1024", "\"unit_size\": 1000");
    rejected(&unit, Check::Unsupported, "pipeline", "units of 1000 bytes");
}

#[test]
fn malformed_plans() {
    let ring = |from: &str, to: &str| with(RING, from, to);
    let cases = [
        ("{".to_owned(), Check::Syntax, "not well-formed JSON"),
        ("{} {}".to_owned(), Check::Syntax, "not well-formed JSON"),
        ("{\"name\": 'a'}".to_owned(), Check::Syntax, "not well-formed JSON"),
        ("{\"name\": \"a\", // b\n}".to_owned(), Check::Syntax, "not well-formed JSON"),
        ("[".repeat(100_000), Check::Syntax, "not well-formed JSON"),
        (ring("\"name\": \"ring_signals\", ", ""), Check::Syntax, "the plan without `name`"),
        (ring("\"buffer_alignment\"", "\"alignment\""), Check::Syntax, "the plan has no field `alignment`"),
        (ring("\"input_chunks\": 3,", "\"input_chunks\": 3, \"input_chunks\": 3,"), Check::Syntax, "twice"),
        (ring("\"Simple\"", "\"simple\""), Check::Syntax, "`protocol` is one of Simple, LL"),
        (ring("\"allreduce\"", "\"all\""), Check::Syntax, "`collective` is one of"),
        (
            ring("\"scratch_chunks\": 0", "\"scratch_chunks\": 1000000000"),
            Check::Syntax,
            "`scratch_chunks` is a whole",
        ),
        (
            ring("\"input_chunks\": 3", "\"input_chunks\": -3"),
            Check::Syntax,
            "`input_chunks` is a whole number",
        ),
        (ring("\"input_chunks\": 3", "\"input_chunks\": 2"), Check::Syntax, "gpu 1 has 3 input and 3 output"),
        (ring("\"id\": 1", "\"id\": 2"), Check::Syntax, "gpu 2 stands where 1 is due"),
        (
            ring("{\"id\": 0, \"channels\"", "{\"id\": 1, \"channels\""),
            Check::Syntax,
            "threadblock 1 stands where 0",
        ),
        (ring("\"rre\"", "\"rrex\""), Check::Syntax, "`rrex` is no operation"),
        (
            ring("{\"name\": \"nop\"}", "{\"name\": \"nop\", \"size\": 1}"),
            Check::Syntax,
            "has no field `size`",
        ),
        (
            ring("{\"name\": \"nop\"}", "{\"name\": \"glre\"}"),
            Check::Unsupported,
            "`glre` cannot be imported",
        ),
        (ring("\"connected_to\": [1, 2]", "\"connected_to\": [0, 2]"), Check::Syntax, "connected to itself"),
        (ring("\"connected_to\": [1, 2]", "\"connected_to\": [1, 3]"), Check::Syntax, "from 0 to 2"),
        (ring("\"channel_ids\": [1]", "\"channel_ids\": [2]"), Check::Form, "there is no memory channel 2"),
        (ring("\"buffer_id\": 0", "\"buffer_id\": 7"), Check::Form, "there is no remote buffer 7"),
        (
            ring("\"index\": 1, \"size\": 1", "\"index\": 3, \"size\": 1"),
            Check::OutOfBounds,
            "there is no chunk 3 among the 3",
        ),
        (
            with(SEMAPHORES, "\"semaphore_ids\": [1]", "\"semaphore_ids\": [2]"),
            Check::Form,
            "there is no semaphore 2",
        ),
        (
            with(SWITCH, "{\"switch_channel_id\": 0", "{\"switch_channel_id\": 1"),
            Check::Form,
            "there is no switch channel 1",
        ),
        (with(SWITCH, "\"ranks\": [0, 1, 2]", "\"ranks\": [0, 1, 1]"), Check::Syntax, "a rank twice"),
        (
            with(GROUPS, "\"tb_id\": 0, \"tbg_size\": 2", "\"tb_id\": 2, \"tbg_size\": 2"),
            Check::Syntax,
            "from 0 to 1",
        ),
        (with(PIPELINE, "\"size\": 2", "\"size\": 1"), Check::Syntax, "joins ranges of different length"),
    ];
    let mut others = Vec::new();
    for (text, check, says) in &cases {
        let list = wrong(text);
        if !list.iter().any(|f| f.check == *check && f.loc.is_some() && f.plain().contains(says)) {
            others.push(format!("{says}: {:?}", list.iter().map(Diagnostic::plain).collect::<Vec<_>>()));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
    // All of them at once.
    let two = with(&ring("\"rre\"", "\"rrex\""), "\"put\"", "\"putt\"");
    assert_eq!(wrong(&two).len(), 2);
    let called = good(RING).called(false).program(3).unwrap_err();
    assert!(called.to_string().contains("the file says `\"inplace\": true`"), "{called}");
}

/// Files with pieces left out, doubled and replaced: whatever they are, they are proved or refused with a place, and
/// nothing panics or runs on.
#[test]
fn damaged_plans_are_refused_or_right() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let (mut right, mut refused) = (0, 0);
    for round in 0..900 {
        let text = ALL[round % ALL.len()];
        // Whole lines of operations, and single words.
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let ops: Vec<usize> = (0..lines.len())
            .filter(|&at| lines[at].trim_start().starts_with("{\"name\": ") && lines[at].ends_with(','))
            .collect();
        let pick = |random: &mut dyn FnMut(usize) -> usize| ops[random(ops.len())];
        let sort = if ops.is_empty() { 3 } else { random(4) };
        match sort {
            0 => drop(lines.remove(pick(&mut random))),
            1 => {
                let (at, from) = (pick(&mut random), pick(&mut random));
                lines.insert(at, lines[from].clone());
            }
            2 => {
                let (at, from) = (pick(&mut random), pick(&mut random));
                lines.swap(at, from);
            }
            _ => {
                let at = random(lines.len());
                let digits: Vec<usize> =
                    lines[at].char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(i, _)| i).collect();
                if !digits.is_empty() {
                    let digit = digits[random(digits.len())];
                    lines[at].replace_range(
                        digit..=digit,
                        ["0", "1", "2", "3", "-1", "99999999999", "\"x\""][random(7)],
                    );
                }
            }
        }
        let damaged = lines.join("\n");
        match prove(&damaged) {
            Ok(_) => right += 1,
            Err(Diagnostics { list, .. }) => {
                assert!(!list.is_empty() && list.iter().all(|f| f.loc.is_some()), "{damaged}\n{list:?}");
                refused += 1;
            }
        }
    }
    assert!(right > 50 && refused > 300, "{right} {refused}");
}
