//! Judges a file as a runtime of MSCCL executes it: what its parser refuses, what it has no room for, and sends that wait
//! for room for ever.

use super::connect::Connected;
use super::document::{Algorithm, StepKind};
use super::runtime::{Runtime, room};
use super::sequence::{Room, stuck};
use crate::diagnostic::words;
use crate::diagnostic::{Check, Diagnostic};
use crate::interop::executor::ExecutorVerdict;
use crate::interop::{finding, shown};
use crate::options::Protocol;
use crate::program::kind::Kind;

/// Judges a file whose sends and receives meet.
pub(super) fn executed(connected: &Connected, runtime: Runtime) -> ExecutorVerdict {
    let algorithm = &connected.algorithm;
    let mut findings = refused(algorithm, runtime);
    findings.extend(beyond(algorithm, runtime));
    findings.extend(hangs(connected, runtime));
    let mut remarks: Vec<String> = runtime.remark().into_iter().map(str::to_owned).collect();
    for (name, at) in &algorithm.said.skipped {
        remarks.push(format!("`{name}` at {at} is skipped: it knows no such element"));
    }
    ExecutorVerdict { executor: runtime.name(), findings: shown(findings), remarks }
}

/// The things that its parser refuses.
fn refused(algorithm: &Algorithm, runtime: Runtime) -> Vec<Diagnostic> {
    let (name, said) = (runtime.name(), &algorithm.said);
    let mut findings = Vec::new();
    for attribute in runtime.needs().iter().filter(|attribute| said.absent.contains(attribute)) {
        let message = format!("`algo` without `{attribute}`, which {name} demands");
        let mut found = finding(Check::Syntax, said.head, message);
        match *attribute {
            "coll" => found = found.note(format!("taken as {}, by its steps and chunks", algorithm.kind)),
            "inplace" => {
                let how = if algorithm.in_place { "in place" } else { "out of place" };
                found = found.note(format!("taken as {how}, by the buffers of its GPUs"));
            }
            _ => {}
        }
        findings.push(found);
    }
    if let (Some((text, at)), Some(due)) = (&said.coll, coll(algorithm.kind, runtime))
        && text != due
    {
        let message = format!("`{text}` is no collective of {name}");
        findings.push(finding(Check::Syntax, *at, message).help(format!("it says `{due}`")));
    } else if let (Some((text, at)), None) = (&said.coll, coll(algorithm.kind, runtime)) {
        findings.push(finding(Check::Syntax, *at, format!("`{text}` is no collective of {name}")));
    }
    let steps = algorithm.gpus.iter().flat_map(|gpu| &gpu.blocks).flat_map(|block| block.steps.windows(2));
    for two in steps {
        let [first, second] = two else { continue };
        let chained = first.kind == StepKind::Nop && first.after.is_some();
        if chained && second.kind != StepKind::Nop && second.after.is_none() {
            let message =
                format!("the step after a `nop` has no dependence of its own, and {name} refuses it");
            let note = "the last dependence of several stands on the step itself";
            findings.push(finding(Check::Syntax, second.loc, message).note(note));
        }
    }
    findings
}

/// The name of a kind in a runtime's files.
pub(super) fn coll(kind: Kind, runtime: Runtime) -> Option<&'static str> {
    match (kind, runtime) {
        (Kind::ReduceScatter, Runtime::Msccl) => Some("reduce_scatter"),
        (Kind::Gather | Kind::Scatter, Runtime::Msccl) => None,
        _ => super::coll(kind),
    }
}

/// The things that it has no room for.
pub(super) fn beyond(algorithm: &Algorithm, runtime: Runtime) -> Vec<Diagnostic> {
    let (name, limits) = (runtime.name(), runtime.limits());
    let mut findings = Vec::new();
    let mut beyond = |loc, what: String, note: String| {
        findings.push(finding(Check::Unsupported, loc, what).note(note));
    };
    if let Some((channels, at)) = algorithm.said.channels.filter(|(count, _)| *count > limits.channels.into())
    {
        let note = format!("{name} has {} channels", limits.channels);
        beyond(at, format!("the file wants {channels} channels"), note);
    }
    for (gpu, rank) in algorithm.gpus.iter().zip(0..) {
        if let Some(block) = gpu.blocks.get(limits.blocks) {
            let note = format!("{name} runs {} on a GPU", limits.blocks);
            beyond(block.loc, format!("gpu {rank} has {} thread blocks", gpu.blocks.len()), note);
        }
        if let Some(block) = gpu.blocks.iter().find(|block| block.channel >= limits.channels) {
            let note = format!("{name} has channels 0 to {}", limits.channels - 1);
            beyond(block.loc, format!("a thread block on channel {}", block.channel), note);
        }
        let mut on_channel = std::collections::BTreeMap::new();
        for block in &gpu.blocks {
            for (way, peer) in [("send", block.send), ("receive", block.receive)] {
                let count: &mut usize = on_channel.entry((block.channel, way)).or_default();
                *count += usize::from(peer.is_some());
                if peer.is_some() && *count == limits.blocks_of_channel + 1 {
                    let what = format!(
                        "more than {} thread blocks that {way} on channel {}",
                        *count - 1,
                        block.channel
                    );
                    beyond(block.loc, what, format!("{name} has room for {} on a GPU", *count - 1));
                }
            }
        }
        for (block, number) in gpu.blocks.iter().zip(0..) {
            if let Some(step) = block.steps.get(limits.steps) {
                let what = format!("gpu {rank}, tb {number} has {} steps", block.steps.len());
                beyond(step.loc, what, format!("{name} runs {} of a thread block", limits.steps));
            }
            if let Some(step) = block.steps.iter().find(|step| step.count > limits.chunks) {
                let what = format!("a step with {} chunks", step.count);
                beyond(step.loc, what, format!("{name} moves {} at most", limits.chunks));
            }
        }
        let elements =
            1 + algorithm.gpus.len() + gpu.blocks.iter().map(|block| 1 + block.steps.len()).sum::<usize>();
        if elements > limits.elements {
            let note = format!("{name} keeps {} of a file's elements", limits.elements);
            beyond(algorithm.loc, format!("gpu {rank} reads {elements} elements"), note);
        }
    }
    findings
}

/// The chunks of a message where the file's messages are largest.
fn least_of_message(algorithm: &Algorithm, runtime: Runtime) -> u32 {
    let Some(most) = algorithm.said.most_bytes.or(runtime.most_bytes()) else { return 1 };
    let chunks = algorithm.unit_chunks * super::message_units(algorithm.kind, algorithm.ranks);
    let chunk = most.div_ceil(chunks.into()).max(1);
    u32::try_from(runtime.slot_bytes(algorithm.protocol) / chunk).unwrap_or(u32::MAX).max(1)
}

/// Sends that wait for room for ever: where chunks are largest, and where a message has all of a step. Waits that nothing
/// would end with any room are findings of stage 2.
fn hangs(connected: &Connected, runtime: Runtime) -> Option<Diagnostic> {
    if !stuck(connected, Room::UNBOUNDED).is_empty() {
        return None;
    }
    let (name, protocol) = (runtime.name(), connected.algorithm.protocol);
    let room = room(protocol);
    let always = stuck(connected, Room { of: u32::MAX, most: room });
    let of = least_of_message(&connected.algorithm, runtime);
    let (blocks, when) = match always.is_empty() {
        true => {
            let slot = words::count(of.into(), "chunk");
            (stuck(connected, Room { of, most: room }), format!(" where a message has {slot}"))
        }
        false => (always, String::new()),
    };
    let sends = |step: &u32| connected.steps[*step as usize].to.is_some();
    let first = blocks.iter().copied().find(sends)?;
    let place = |step: u32| {
        let linked = &connected.steps[step as usize];
        format!("gpu {}, tb {}", linked.place.rank.0, linked.place.block.0)
    };
    let message = format!("{} waits for ever to send in {name}{when}", place(first));
    let slots = words::count(u64::from(room), "message");
    let mut found = finding(Check::Deadlock, connected.steps[first as usize].step.loc, message)
        .note(format!("a connection has room for {slots} by {protocol}"));
    for &other in blocks.iter().filter(|step| **step != first).take(4) {
        let at = connected.steps[other as usize].step.loc;
        found = found.note(format!("{} waits at {at} meanwhile", place(other)));
    }
    Some(found.help(match protocol {
        Protocol::Simple => "receive between the sends; LL has room for 8",
        Protocol::Ll | Protocol::Ll128 => "receive between the sends",
    }))
}
