//! MSCCL XML: what files mean, and what is wrong with those that are.

use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostic, Diagnostics, SourceFile};
use quadrille_compiler::interop;
use quadrille_compiler::interop::msccl::{self, Runtime};
use quadrille_compiler::program::dtype::{DType, RedOp};

const RING: &str = include_str!("../../tests/interop/ring_all_reduce.xml");
const SCRATCH: &str = include_str!("../../tests/interop/scratch_all_reduce.xml");
const IN_PLACE: &str = include_str!("../../tests/interop/all_to_all_in_place.xml");
const GATHER: &str = include_str!("../../tests/interop/all_gather.xml");

/// What a whole proof of a file gives.
fn prove(text: &str) -> Result<String, Diagnostics> {
    let collective = msccl::import("plan.xml", text)?;
    let ranks = collective.ranks[0];
    collective.report(ranks)?;
    let domain = collective.domain(ranks);
    collective.kernel(&domain, DType::F32, RedOp::Sum)?;
    Ok(collective.verified(&domain)?.to_string())
}

fn good(text: &str) -> Collective {
    prove(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    msccl::import("plan.xml", text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// The findings of a wrong file.
fn wrong(text: &str) -> Vec<Diagnostic> {
    match prove(text) {
        Ok(schedule) => panic!("nothing is found wrong with\n{text}\n{schedule}"),
        Err(Diagnostics { list, source }) => {
            assert!(source.is_some());
            list
        }
    }
}

/// The file with the first `from` in it replaced.
fn with(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "there is no {from}");
    text.replacen(from, to, 1)
}

/// Asserts that a file has one finding, of a check, at `line:column`, that says something.
#[track_caller]
fn rejected(text: &str, check: Check, at: &str, says: &str) {
    let list = wrong(text);
    let found: Vec<_> = list
        .iter()
        .map(|finding| (finding.check, finding.loc.map(|loc| loc.to_string()).unwrap_or_default()))
        .collect();
    let texts: Vec<_> = list.iter().map(Diagnostic::plain).collect();
    assert_eq!(found, [(check, at.to_owned())], "{texts:#?}");
    assert!(texts[0].contains(says), "{}", texts[0]);
}

/// `<step ../>` that sends or receives one chunk of the input.
fn step(s: usize, kind: &str, buffer: &str, chunk: u32) -> String {
    format!(
        "<step s=\"{s}\" type=\"{kind}\" srcbuf=\"{buffer}\" srcoff=\"{chunk}\" dstbuf=\"{buffer}\" dstoff=\"{chunk}\" \
         cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n"
    )
}

/// Two GPUs that exchange `chunks` chunks in place; each runs `steps`, given its number.
fn pair(proto: &str, chunks: u32, steps: impl Fn(u32) -> String) -> String {
    let gpu = |id: u32| {
        let (peer, steps) = (1 - id, steps(id));
        format!(
            "<gpu id=\"{id}\" i_chunks=\"{chunks}\" o_chunks=\"0\" s_chunks=\"{chunks}\">\n\
             <tb id=\"0\" send=\"{peer}\" recv=\"{peer}\" chan=\"0\">\n{steps}</tb>\n</gpu>\n"
        )
    };
    format!(
        "<algo name=\"pair\" proto=\"{proto}\" nchunksperloop=\"{chunks}\" ngpus=\"2\" coll=\"allreduce\" inplace=\"1\" nchannels=\"1\">\n\
         {}{}</algo>\n",
        gpu(0),
        gpu(1)
    )
}

/// Every chunk is sent, then every chunk received.
fn all_sent_first(proto: &str, chunks: u32) -> String {
    pair(proto, chunks, |_| {
        let sends = (0..chunks).map(|c| step(c as usize, "s", "i", c));
        let receives = (0..chunks).map(|c| step((chunks + c) as usize, "rrc", "i", c));
        sends.chain(receives).collect()
    })
}

/// One step sends `chunks` chunks, another one receives them.
fn sent_at_once(proto: &str, sends: u32, chunks: u32) -> String {
    pair(proto, sends * chunks, |_| {
        let many = |s: u32, kind: &str, at: u32| {
            step(s as usize, kind, "i", at * chunks).replace("cnt=\"1\"", &format!("cnt=\"{chunks}\""))
        };
        let (out, back) =
            ((0..sends).map(|c| many(c, "s", c)), (0..sends).map(|c| many(sends + c, "rrc", c)));
        out.chain(back).collect()
    })
}

#[test]
fn steps_become_operations_in_the_order_of_their_operands() {
    let ring = good(RING);
    let program = ring.program(3).unwrap();
    let of_line = |line: u32| {
        let at = |op: &&quadrille_compiler::program::Op| {
            program.statements[op.statement.0 as usize].loc.start.line == line
        };
        let ops: Vec<_> = program.ops.iter().filter(at).map(ToString::to_string).collect();
        ops.join("; ")
    };
    assert_eq!(of_line(4), "scratch[1][0] = data[0][0] on r0 block 0");
    assert_eq!(of_line(5), "data[0][0], scratch[1][1] = scratch[0][0] on r0 block 0");
    assert_eq!(of_line(8), "data[0][1], scratch[1][2] = data[0][1] + scratch[0][1] on r0 block 1");
    assert_eq!(of_line(13), "scratch[2][0] = data[1][0] + scratch[1][0] on r1 block 0");
    assert_eq!(of_line(23), "data[2][0] = data[2][0] + scratch[2][0] on r2 block 0");
    assert_eq!(of_line(28), "data[2][1] = scratch[2][2] on r2 block 1");
    let schedule = ring.verified(&ring.domain(3)).unwrap();
    assert_eq!((schedule.shape.scratch, program.in_flight), (0, Some(3)), "messages take no scratch");

    let program = good(SCRATCH).program(2).unwrap();
    let reduces = program.ops.iter().filter(|op| op.sources.len() == 2).map(ToString::to_string);
    let of_first: Vec<_> = reduces.filter(|op| op.contains("on r0")).collect();
    assert_eq!(
        of_first,
        [
            "output[0][0] = output[0][0] + scratch[0][0] on r0 block 2",
            "output[0][1] = output[0][1] + scratch[0][1] on r0 block 2",
        ]
    );
    assert_eq!(good(SCRATCH).name, "by_scratch");
    // The blocks of both GPUs share their text, whatever lines they come from.
    let scratch = good(SCRATCH);
    let kernel = scratch.kernel(&scratch.domain(2), DType::F32, RedOp::Sum).unwrap();
    let members: Vec<_> = kernel.classes.iter().map(|class| class.members.len()).collect();
    assert_eq!(members, [2, 2, 2]);
}

#[test]
fn a_plan_runs_as_its_file_says_in_place_or_not() {
    let both = good(GATHER);
    assert!(!both.in_place);
    let in_place = both.called(true);
    assert!(in_place.in_place && in_place.program(2).unwrap().shape.in_place);
    in_place.kernel(&in_place.domain(2), DType::Bf16, RedOp::Sum).unwrap();

    let refused = good(RING).called(false).program(3).unwrap_err();
    assert_eq!(refused.list[0].check, Check::Requirement);
    assert!(refused.to_string().contains("the file does not say `outofplace=\"1\"`"), "{refused}");
    let other = good(RING).program(4).unwrap_err();
    assert!(other.to_string().contains("`ring` does not run on 4 ranks"), "{other}");
}

#[test]
fn blocks_beyond_the_usual_cap_have_room() {
    let tb = |id: usize| {
        let copy = step(0, "cpy", "i", 0)
            .replace("dstbuf=\"i\" dstoff=\"0\"", &format!("dstbuf=\"s\" dstoff=\"{id}\""));
        format!("<tb id=\"{id}\" send=\"-1\" recv=\"-1\" chan=\"0\">{copy}</tb>")
    };
    let blocks = |count: usize| (0..count).map(tb).collect::<String>();
    let plan = |count: usize| {
        format!(
            "<algo name=\"a\" proto=\"LL\" nchunksperloop=\"1\" ngpus=\"1\" coll=\"allreduce\" inplace=\"1\">\n\
             <gpu id=\"0\" i_chunks=\"1\" o_chunks=\"0\" s_chunks=\"65\">{}</gpu></algo>",
            blocks(count)
        )
    };
    assert_eq!(good(&plan(1)).domain(1).block_cap, 32);
    assert_eq!(good(&plan(64)).domain(1).block_cap, 64);
    let list = wrong(&plan(65));
    assert!(list[0].check == Check::Unsupported && list[0].message.contains("65 thread blocks"), "{list:?}");
}

#[test]
fn malformed_files() {
    let neither = with(RING, "inplace=\"1\"", "inplace=\"0\"");
    let sizes = with(RING, "minBytes=\"0\" maxBytes=\"0\"", "minBytes=\"2\" maxBytes=\"1\"");
    let last = "type=\"re\" srcbuf=\"s\" srcoff=\"1\"";
    let last = with(SCRATCH, last, &last.replace("re", "nop"));
    let nop = with(SCRATCH, "deps=\"0\" hasdep=\"0\"", "deps=\"0\" hasdep=\"1\"");
    let ring = |from: &str, to: &str| with(RING, from, to);
    let cases = [
        ("<algo".to_owned(), "1:1", "not well-formed XML"),
        ("<!DOCTYPE algo [<!ENTITY a \"b\">]>\n<algo/>".to_owned(), "1:1", "not well-formed XML"),
        (ring("</gpu>", ""), "31:1", "not well-formed XML"),
        ("<system/>".to_owned(), "1:1", "`system` where `algo` is due"),
        (ring("<gpu id=\"0\"", "<gpu id=\"0\" type=\"H\""), "2:15", "`gpu` has no attribute `type`"),
        (format!("{RING}<algo/>"), "32:1", "text behind `</algo>`"),
        (format!("{RING}# made by hand"), "32:1", "text behind `</algo>`"),
        (ring("<tb id=\"0\"", "ä tb <tb id=\"0\""), "2:54", "text between elements"),
        (ring("nchunksperloop=\"2\" ", ""), "1:1", "`algo` without `nchunksperloop`"),
        (ring("\"Simple\"", "\"simple\""), "1:26", "`proto` is one of Simple, LL, LL128"),
        (ring("type=\"rcs\"", "type=\"rsc\""), "5:25", "`type` is one of s, r, rcs, rrc,"),
        (ring("\"allreduce\"", "\"allred\""), "1:83", "`allred` is no collective"),
        (ring("cnt=\"1\"", "cnt=\"99999999999999999999\""), "4:77", "`cnt` is a whole number from 1"),
        (ring("cnt=\"1\"", "cnt=\"0\""), "4:77", "`cnt` is a whole number from 1"),
        (ring("chan=\"1\"", "chan=\"99999\""), "7:40", "`chan` is a whole number from 0 to 65535"),
        (ring("send=\"1\"", "send=\"3\""), "3:22", "`send` is a whole number from -1 to 2"),
        (ring("<gpu id=\"1\"", "<gpu id=\"2\""), "11:12", "`gpu` 2 stands where 1 is due"),
        (ring("<tb id=\"1\"", "<tb id=\"0\""), "7:13", "`tb` 0 stands where 1 is due"),
        (ring("<step s=\"1\"", "<step s=\"2\""), "5:16", "`step` 2 stands where 1 is due"),
        (ring("ngpus=\"3\"", "ngpus=\"4\""), "1:1", "`ngpus` is 4, and there are 3 `gpu` elements"),
        (with(GATHER, "nchunksperloop=\"4\"", "nchunksperloop=\"3\""), "1:53", "for each of 2 GPUs"),
        (neither, "1:106", "neither for calls in place nor"),
        (sizes, "1:1", "no message has 2 to 1 bytes"),
        (with(SCRATCH, "depid=\"0\"", "depid=\"3\""), "11:91", "`depid` is a whole number from -1 to 2"),
        (last, "13:7", "waits for the sake of no step"),
        (nop, "11:103", "a `nop` publishes nothing"),
    ];
    let mut others = Vec::new();
    for (text, at, says) in &cases {
        let found = wrong(text).into_iter().map(|f| {
            let place = f.loc.map(|loc| loc.to_string()).unwrap_or_default();
            (f.check, place, f.plain())
        });
        let found: Vec<_> = found.collect();
        let [(Check::Syntax, place, message)] = &found[..] else {
            others.push(format!("{says}: {found:?}"));
            continue;
        };
        if place != at || !message.contains(says) {
            others.push(format!("{says} at {at}: {message} at {place}"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn every_problem_of_a_file_is_told_at_once() {
    let text = with(&with(RING, "type=\"rrs\"", "type=\"rss\""), "chan=\"0\"", "chan=\"x\"");
    let text = with(&text, "cnt=\"1\"", "cnt=\"-5\"");
    let lines: Vec<_> = wrong(&text).iter().filter_map(|finding| Some(finding.loc?.start.line)).collect();
    assert_eq!(lines, [3, 4, 13]);
}

#[test]
fn what_cannot_be_imported() {
    rejected(
        &with(RING, "\"allreduce\"", "\"alltoallv\""),
        Check::Unsupported,
        "1:83",
        "`alltoallv` cannot be",
    );
    let large = RING.replace("\"2\"", "\"60000\"").replace("ngpus=\"3\"", "ngpus=\"1000\"");
    let list = wrong(&large);
    let found = list.iter().any(|f| f.check == Check::Unsupported && f.message.contains("1000 GPUs with"));
    assert!(found, "{list:?}");
    // 32 steps of 65536 chunks each: refused by their number before anything is laid out.
    let many: String = (0..32)
        .map(|s| {
            step(s, "re", "i", 0)
                .replace("cnt=\"1\"", "cnt=\"65536\"")
                .replace("dstbuf=\"i\"", "dstbuf=\"s\"")
        })
        .collect();
    let list = wrong(&pair("LL", 65536, |_| many.clone()));
    assert!(list.iter().any(|f| f.check == Check::Unsupported && f.message.contains("move 4194304 chunks")));
}

#[test]
fn chunks_outside_buffers() {
    let beyond = with(RING, "srcoff=\"1\" dstbuf", "srcoff=\"2\" dstbuf");
    rejected(&beyond, Check::OutOfBounds, "8:42", "there is no chunk 2 among the 2 of `i`");
    let beyond = with(
        RING,
        "dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n    </tb>",
        "dstoff=\"1\" cnt=\"2\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n    </tb>",
    );
    rejected(&beyond, Check::OutOfBounds, "5:63", "there are no chunks 1 to 2 among the 2 of `i`");
    // The file says that there are more than the collective has.
    let beyond =
        with(&with(RING, "i_chunks=\"2\"", "i_chunks=\"9\""), "srcoff=\"1\" dstbuf", "srcoff=\"8\" dstbuf");
    rejected(&beyond, Check::OutOfBounds, "8:7", "there is no chunk 8 among the 2 of `i`");
    let copy =
        step(0, "cpy", "i", 0).replace("cnt=\"1\"", "cnt=\"2\"").replace("dstoff=\"0\"", "dstoff=\"1\"");
    let list = wrong(&pair("LL", 3, |_| copy.clone()));
    assert_eq!(list.iter().map(|f| f.check).collect::<Vec<_>>(), [Check::Overlap; 2], "{list:?}");
}

#[test]
fn peers_that_do_not_answer() {
    let reject = |text: &str, at: &str, says: &str| rejected(text, Check::Form, at, says);
    // Two thread blocks on one connection.
    let shared = with(
        SCRATCH,
        "<tb id=\"2\" send=\"-1\" recv=\"-1\" chan=\"0\">",
        "<tb id=\"2\" send=\"1\" recv=\"-1\" chan=\"0\">",
    );
    reject(&shared, "10:5", "tb 1 and tb 2 of gpu 0 both send to gpu 1 on channel 0");
    let list = wrong(&with(SCRATCH, "send=\"1\" recv=\"1\"", "send=\"1\" recv=\"0\""));
    let says: Vec<_> = list.iter().map(|f| f.message.as_str()).collect();
    assert_eq!(
        says,
        ["gpu 0, tb 1 has its own GPU as `recv`", "nobody on gpu 0 receives from gpu 1 on channel 0"]
    );
    let list = wrong(&with(RING, "send=\"1\" recv=\"2\" chan=\"0\"", "send=\"-1\" recv=\"2\" chan=\"0\""));
    let says: Vec<_> = list.iter().map(|f| (f.loc.map(|l| l.start.line), f.message.as_str())).collect();
    assert_eq!(
        says,
        [
            (Some(4), "the step sends, and gpu 0, tb 0 has nobody to do so with"),
            (Some(5), "the step sends, and gpu 0, tb 0 has nobody to do so with"),
            (Some(12), "nobody on gpu 0 sends to gpu 1 on channel 0"),
        ]
    );
    let list = wrong(&with(RING, "send=\"2\" recv=\"0\" chan=\"1\"", "send=\"2\" recv=\"0\" chan=\"2\""));
    assert!(list.iter().any(|f| f.message == "nobody on gpu 1 receives from gpu 0 on channel 1"), "{list:?}");
    let two = step(0, "s", "i", 0).replace("cnt=\"1\"", "cnt=\"2\"");
    let list = wrong(&pair("LL", 2, |gpu| if gpu == 0 { two.clone() } else { step(0, "r", "i", 0) }));
    assert!(
        list.iter().any(|f| f.message == "the step receives 1 chunk where gpu 0, tb 0 sends 2 chunks"),
        "{list:?}"
    );
    let list = wrong(&pair("LL", 1, |_| step(0, "s", "i", 0)));
    assert_eq!(list[0].message, "gpu 0, tb 0 sends 1 time, and gpu 1, tb 0 receives 0 times");
}

#[test]
fn waits_without_end() {
    let reject = |text: &str, at: &str, says: &str| rejected(text, Check::Deadlock, at, says);
    let silent = with(
        SCRATCH,
        "cnt=\"2\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"",
        "cnt=\"2\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"",
    );
    reject(&silent, "11:7", "waits for step 0 of tb 0 for ever");
    let own = with(SCRATCH, "depid=\"1\" deps=\"1\"", "depid=\"2\" deps=\"2\"");
    let own = with(
        &own,
        "dstoff=\"1\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"",
        "dstoff=\"1\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"",
    );
    reject(&own, "12:7", "which comes after it");
    rejected(
        &with(SCRATCH, "depid=\"1\" deps=\"1\"", "depid=\"1\" deps=\"7\""),
        Check::Form,
        "12:7",
        "there is no step 7 in tb 1",
    );

    // Thread blocks of one GPU that wait for each other, by way of a `nop`.
    let cycle = with(
        SCRATCH,
        "cnt=\"2\" depid=\"-1\" deps=\"-1\" hasdep=\"1\"",
        "cnt=\"2\" depid=\"2\" deps=\"1\" hasdep=\"1\"",
    );
    let cycle = with(&cycle, "depid=\"1\" deps=\"1\" hasdep=\"0\"", "depid=\"1\" deps=\"1\" hasdep=\"1\"");
    reject(&cycle, "4:7", "r0.b0 and r0.b2 wait for each other");

    // Both receive before they send.
    let both = pair("LL", 1, |_| step(0, "rrc", "i", 0) + &step(1, "s", "i", 0));
    reject(&both, "4:1", "r0.b0 and r1.b0 wait for each other");
}

/// The findings on a runtime, as `check line:column message`.
fn judged(text: &str, runtime: Runtime) -> Vec<String> {
    let source = SourceFile { path: "plan.xml".into(), first_line: 1, text: text.into() };
    let verdict = interop::executed(&source, runtime).unwrap();
    assert_eq!(verdict.executor, runtime.name());
    let say = |finding: &Diagnostic| {
        let at = finding.loc.map(|loc| loc.to_string()).unwrap_or_default();
        format!("{} {at} {}", finding.check, finding.message)
    };
    verdict.findings.iter().map(say).collect()
}

#[test]
fn room_of_the_runtimes() {
    let msccl = |text: &str| judged(text, Runtime::Msccl);
    for proto in ["LL", "LL128"] {
        assert!(msccl(&all_sent_first(proto, 8)).is_empty());
    }
    assert!(msccl(&all_sent_first("Simple", 2)).is_empty());
    // Quadrille's connections hold them.
    good(&all_sent_first("Simple", 3));
    let hang = "deadlock 6:1 gpu 0, tb 0 waits for ever to send in MSCCL";
    assert_eq!(msccl(&all_sent_first("Simple", 3)), [hang]);
    let in_rccl = judged(&all_sent_first("Simple", 3), Runtime::Rccl);
    assert!(in_rccl.contains(&hang.replace("MSCCL", "RCCL")), "{in_rccl:?}");
    // Two sends at once, of which each slot holds all, or one chunk.
    let at_once = hang.replace("6:1", "4:1") + " where a message has 1 chunk";
    assert_eq!(msccl(&sent_at_once("Simple", 2, 4)), [at_once.as_str()]);
    assert!(msccl(&sent_at_once("LL", 2, 4)).is_empty());
    // A file for messages whose chunks are so small that two fit into a slot, or four.
    let up_to = |bytes: u64| {
        let text = sent_at_once("Simple", 1, 8);
        text.replace("nchannels=\"1\"", &format!("nchannels=\"1\" maxBytes=\"{bytes}\""))
    };
    assert_eq!(msccl(&up_to(8 << 20)), [at_once.replace("1 chunk", "2 chunks")]);
    assert!(msccl(&up_to(4 << 20)).is_empty());
}

#[test]
fn limits_of_the_runtimes() {
    let only = |text: &str, runtime: Runtime, says: &str| {
        let found = judged(text, runtime);
        assert!(found.len() == 1 && found[0].contains(says), "{says}: {found:?}");
    };
    assert_eq!((judged(RING, Runtime::Msccl), judged(RING, Runtime::Rccl)), (vec![], vec![]));
    let channels = with(RING, "nchannels=\"2\"", "nchannels=\"34\"");
    only(&channels, Runtime::Msccl, "the file wants 34 channels");
    assert!(judged(&channels, Runtime::Rccl).is_empty());
    let steps = |count: usize| {
        let steps: String = (0..count).map(|s| step(s, "cpy", "i", 0)).collect();
        let text = pair("LL", 1, |_| steps.clone());
        text.replace("inplace=\"1\"", "inplace=\"1\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"0\"")
    };
    assert!(judged(&steps(64), Runtime::Rccl).is_empty() && judged(&steps(256), Runtime::Msccl).is_empty());
    assert_eq!(judged(&steps(65), Runtime::Rccl)[0], "unsupported 68:1 gpu 0, tb 0 has 65 steps");
    assert!(judged(&steps(257), Runtime::Msccl)[0].ends_with("gpu 0, tb 0 has 257 steps"));
    let channel = RING.replace("chan=\"1\"", "chan=\"32\"");
    assert!(judged(&channel, Runtime::Msccl)[0].ends_with("a thread block on channel 32"));
    // What the file does not say is inferred, and missed by the runtimes.
    for (attribute, note) in
        [(" coll=\"allreduce\"", "taken as all_reduce"), (" inplace=\"1\"", "taken as in place")]
    {
        let text = with(RING, attribute, "").replace(" outofplace=\"1\"", "");
        let plan = good(&text);
        assert!(plan.in_place, "{note}");
        let source = plan.source.clone();
        let findings = interop::executed(&source, Runtime::Msccl).unwrap().findings;
        assert!(findings.len() == 1 && findings[0].notes[0].contains(note), "{findings:?}");
    }
    // Elements of others, which all skip.
    let copies = with(RING, "<tb id=\"0\"", "<copy i_off=\"0\"/><tb id=\"0\"");
    assert_eq!(good(&copies).program(3).unwrap().to_string(), good(RING).program(3).unwrap().to_string());
    let source = SourceFile { path: "plan.xml".into(), first_line: 1, text: copies.as_str().into() };
    let remarks = interop::executed(&source, Runtime::Rccl).unwrap().remarks;
    assert!(remarks[0].contains("#4340") && remarks[1].contains("`copy` at 3:5 is skipped"), "{remarks:?}");
    // The last of several dependences stands on the step.
    let chain = with(SCRATCH, "depid=\"1\" deps=\"1\"", "depid=\"-1\" deps=\"-1\"");
    assert!(judged(&chain, Runtime::Msccl).iter().any(|found| found.contains("no dependence of its own")));
}

#[test]
fn sends_beyond_the_slots() {
    for proto in ["Simple", "LL", "LL128"] {
        good(&sent_at_once(proto, 1, 8));
        let list = wrong(&all_sent_first(proto, 10));
        assert_eq!(list.iter().map(|f| f.check).collect::<Vec<_>>(), [Check::Deadlock], "{list:?}");
        assert!(list[0].loc.is_some_and(|loc| (4..24).contains(&loc.start.line)), "{list:?}");
        assert!(list[0].message.contains("r0.b0 and r1.b0 wait for each other"), "{list:?}");
    }
    // RCCL runs these while chunks are small: 8 sends on their way, or 2.
    for (proto, sends, chunks) in [("LL", 8, 3), ("LL128", 1, 9), ("Simple", 2, 5)] {
        let list = wrong(&sent_at_once(proto, sends, chunks));
        assert_eq!(list.iter().map(|f| f.check).collect::<Vec<_>>(), [Check::Unsupported], "{list:?}");
        assert!(list[0].message.contains("more than 8 chunks on their way"), "{list:?}");
    }
    // And this one never.
    let list = wrong(&sent_at_once("Simple", 3, 3));
    assert_eq!(list[0].check, Check::Deadlock, "{list:?}");
}

#[test]
fn races() {
    // Without its dependence the copy overwrites what the send may still have to read.
    let race = IN_PLACE.replace("depid=\"0\" deps=\"0\"", "depid=\"-1\" deps=\"-1\"");
    let list = wrong(&race);
    assert_eq!(list.iter().map(|f| f.check).collect::<Vec<_>>(), [Check::DataRace; 2], "{list:?}");
    let lines: Vec<_> = list.iter().filter_map(|f| Some(f.loc?.start.line)).collect();
    assert_eq!(lines, [8, 17], "{list:?}");
    // Where the values depend on who comes first, that is what is told.
    let race = with(SCRATCH, "depid=\"1\" deps=\"1\"", "depid=\"-1\" deps=\"-1\"");
    let checks: Vec<_> = wrong(&race).iter().map(|f| f.check).collect();
    assert!(!checks.is_empty() && checks.iter().all(|check| *check == Check::DataRace), "{checks:?}");
}

#[test]
fn wrong_results() {
    let list = wrong(&with(RING, "type=\"rrc\"", "type=\"r\""));
    assert!(list.iter().all(|f| f.check == Check::Postcondition), "{list:?}");
    assert_eq!(list[0].loc.map(|loc| loc.start.line), Some(5), "the step that stores it last: {list:?}");
    assert!(list[0].message.contains("lacks the input of rank"), "{}", list[0].message);
    // A reduction whose operand is a chunk of the other GPU.
    let remote =
        with(SCRATCH, "type=\"r\" srcbuf=\"s\" srcoff=\"0\"", "type=\"rrc\" srcbuf=\"s\" srcoff=\"0\"");
    let list = wrong(&remote);
    assert_eq!(list[0].check, Check::ReadBeforeWrite, "{list:?}");
    assert_eq!(list[0].loc.map(|loc| loc.start.line), Some(8));
    // A received chunk forwarded from another place than it was kept at.
    let list = wrong(&with(
        RING,
        "type=\"rcs\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\"",
        "type=\"rcs\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"1\"",
    ));
    assert!(!list.is_empty());
    // The input is the caller's.
    let list = wrong(&with(
        SCRATCH,
        "dstbuf=\"s\" dstoff=\"0\" cnt=\"2\" depid=\"-1\"",
        "dstbuf=\"i\" dstoff=\"0\" cnt=\"2\" depid=\"-1\"",
    ));
    assert!(list.iter().any(|f| f.check == Check::InputOverwritten), "{list:?}");
}

#[test]
fn three_hundred_steps_of_one_thread_block() {
    let steps = |_| {
        (0..150).map(|s| step(2 * s, "s", "i", s as u32) + &step(2 * s + 1, "rrc", "i", s as u32)).collect()
    };
    let plan = good(&pair("LL", 150, steps));
    assert_eq!(plan.program(2).unwrap().ops.len(), 600);
}

#[test]
fn operators_that_scale() {
    let ring = good(RING);
    for op in ["avg", "premul_sum:0.5"] {
        ring.kernel(&ring.domain(3), DType::F32, op.parse().unwrap())
            .unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    let alone = "<algo name=\"a\" proto=\"LL\" nchunksperloop=\"1\" ngpus=\"1\" coll=\"allreduce\" inplace=\"1\">\
                 <gpu id=\"0\" i_chunks=\"1\" o_chunks=\"0\" s_chunks=\"0\"/></algo>";
    let alone = good(alone);
    let refused = alone.kernel(&alone.domain(1), DType::F32, "premul_sum:0.5".parse().unwrap()).unwrap_err();
    assert_eq!(refused.list[0].check, Check::Unsupported);
}

#[test]
fn chunks_of_different_size_need_divisible_counts() {
    assert!(!good(RING).program(3).unwrap().divisible);
    let crossed = pair("LL", 2, |_| {
        step(0, "s", "i", 0)
            + &step(1, "s", "i", 1)
            + &step(2, "r", "s", 1)
            + &step(3, "r", "s", 0)
            + &{
                let crossed = |s, to: u32| {
                    step(s, "re", "s", 1 - to).replace(
                        &format!("dstbuf=\"s\" dstoff=\"{}\"", 1 - to),
                        &format!("dstbuf=\"i\" dstoff=\"{to}\""),
                    )
                };
                crossed(4, 0) + &crossed(5, 1)
            }
    });
    assert!(!good(&crossed).program(2).unwrap().divisible, "chunks keep their size in scratch");
    // Chunk 0 of the sum is kept where chunk 1 of the message is due, and sent back.
    let rotated = "<algo name=\"a\" proto=\"LL\" nchunksperloop=\"2\" ngpus=\"1\" coll=\"allreduce\" inplace=\"0\">\
        <gpu id=\"0\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"0\"><tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">\
        <step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\"/>\
        <step s=\"1\" type=\"cpy\" srcbuf=\"o\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\"/>\
        <step s=\"2\" type=\"cpy\" srcbuf=\"i\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\"/></tb></gpu></algo>";
    assert!(good(rotated).program(1).unwrap().divisible);
}

/// Files with pieces left out, doubled and replaced: whatever they are, they are proved or refused with a place, and
/// nothing panics or runs on.
#[test]
fn damaged_files_are_refused_or_right() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let words = [
        "-1",
        "0",
        "1",
        "2",
        "7",
        "65536",
        "99999999999",
        "s",
        "i",
        "o",
        "rrcs",
        "re",
        "nop",
        "",
        "ä",
        "\"",
        "<",
        ">",
    ];
    let (mut right, mut refused) = (0, 0);
    for round in 0..1500 {
        let text = [RING, SCRATCH, IN_PLACE, GATHER][round % 4];
        let mut parts: Vec<&str> = text.split_inclusive('"').collect();
        for _ in 0..1 + random(3) {
            let at = random(parts.len());
            match random(4) {
                0 => drop(parts.remove(at)),
                1 => parts.insert(at, parts[random(parts.len())]),
                2 => parts[at] = parts[random(parts.len())],
                _ => parts[at] = words[random(words.len())],
            }
            // A value of an attribute keeps its quotes, so that the damage is not always one of the XML.
            if random(4) > 0 {
                parts = text.split_inclusive('"').collect();
                let values: Vec<usize> = (0..parts.len()).filter(|i| i % 2 == 1).collect();
                let (at, from) = (values[random(values.len())], values[random(values.len())]);
                parts[at] = parts[from];
            }
        }
        let damaged = parts.concat();
        match prove(&damaged) {
            Ok(_) => right += 1,
            Err(Diagnostics { list, .. }) => {
                assert!(!list.is_empty() && list.iter().all(|f| f.loc.is_some()), "{damaged}\n{list:?}");
                refused += 1;
            }
        }
    }
    assert!(right > 50 && refused > 500, "{right} {refused}");
    let deep = "<algo>".repeat(100_000);
    assert_eq!(wrong(&deep)[0].check, Check::Syntax);
}
