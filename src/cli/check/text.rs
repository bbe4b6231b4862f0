//! The text of `check`: one world size whole, several as a table.

use super::{CheckedSchedule, CheckedSize, Proved, ScheduleVerdict, SizeVerdict};
use quadrille_compiler::collective::Collective;
use quadrille_compiler::lower::ChosenProtocol;
use quadrille_compiler::options::Protocol;
use quadrille_compiler::report::Report;
use quadrille_compiler::values::order::ReductionOrder;
use std::fmt::Write;

/// The table's first lines: the collective, and titles. `sends`, `receives` and `bound` are parts of the message.
pub(super) fn head(collective: &Collective) -> String {
    let place = if collective.in_place { ", in place" } else { "" };
    let mut text = format!("{}: {}{place}\n{:>5}", collective.name, collective.kind, "ranks");
    for param in &collective.params {
        let _ = write!(text, " {:>width$}", param.name, width = width(&param.name));
    }
    let [a, b, c, d, e, f, g, h, i] =
        ["operations", "sends", "receives", "bound", "hops", "order", "bits", "by size", "called"];
    let _ = write!(text, " {a:>10} {b:>7} {c:>8} {d:>7} {e:>5}  {f:<9}{g:<8}{h:<9}{i:<9}proof");
    text
}

fn width(name: &str) -> usize {
    name.len().max(3)
}

/// One line of the table.
pub(super) fn row(size: &CheckedSize) -> String {
    let mut text = format!("{:>5}", size.ranks);
    for (name, value) in &size.params {
        let _ = write!(text, " {value:>width$}", width = width(name));
    }
    match &size.verdict {
        SizeVerdict::NotAdmitted { why } => {
            let _ = write!(text, " not admitted: {why}");
        }
        SizeVerdict::Wrong => text.push_str(" wrong"),
        SizeVerdict::Right(proved) => {
            let Report { operations, traffic, hops, .. } = &proved.report;
            let part = |chunks| traffic.part(chunks).to_string();
            let bound = traffic.bound.map_or("-".to_owned(), |bound| bound.to_string());
            let (order, bits, sizes) = order(&proved.report);
            let _ = write!(
                text,
                " {operations:>10} {:>7} {:>8} {bound:>7} {:>5}  {order:<9}{bits:<8}{sizes:<9}{:<9}",
                part(traffic.most_sent()),
                part(traffic.most_received()),
                hops.longest,
                called(proved),
            );
            let proofs: Vec<_> = proved.schedules.iter().map(|s| proof(s, proved.schedules.len())).collect();
            text.push_str(&proofs.join("; "));
        }
    }
    text
}

/// The order of combination, whether ranks get the same bits, whether these depend on the message's size.
fn order(report: &Report) -> (&'static str, &'static str, &'static str) {
    let order = match report.reduction.order {
        ReductionOrder::Exact => return ("copies", "exact", "no"),
        ReductionOrder::Switch => "switch",
        ReductionOrder::Ranks { .. } => "by rank",
        ReductionOrder::Ring { .. } => "ring",
        ReductionOrder::Other(_) => "other",
    };
    let bits = if report.reduction.ranks_differ.is_none() { "equal" } else { "differ" };
    let sizes = match (&report.reduction.order, &report.reduction.chunks_differ) {
        (ReductionOrder::Switch, _) => "open",
        (_, None) => "no",
        (_, Some(_)) => "yes",
    };
    (order, bits, sizes)
}

/// In which ways the collective may be called, in brief.
fn called(proved: &Proved) -> &'static str {
    match (proved.in_place.is_ok(), proved.out_of_place.is_ok()) {
        (true, true) => "both",
        (true, false) => "in place",
        (false, true) => "out",
        (false, false) => "-",
    }
}

fn proof(schedule: &CheckedSchedule, of: usize) -> String {
    let number = if of > 1 { format!("schedule {}: ", schedule.number) } else { String::new() };
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let outcome = match &schedule.outcome {
        ScheduleVerdict::Proved { totals, proof_ms, .. } => format!(
            "proved: {}, {}, {} in {proof_ms:.2} ms",
            plural(totals.blocks, "block"),
            plural(totals.steps, "step"),
            plural(totals.waits, "wait"),
        ),
        ScheduleVerdict::Waits { why } => format!("stage 1 holds; waits for {why}"),
        ScheduleVerdict::Wrong => "wrong".to_owned(),
    };
    number + &outcome
}

/// How a schedule moves data, and what lowering saved.
fn movement(schedule: &CheckedSchedule) -> Option<(String, String)> {
    let ScheduleVerdict::Proved { totals, saved, tile, instances, .. } = &schedule.outcome else {
        return None;
    };
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let mut moves: Vec<String> = Protocol::ALL
        .iter()
        .zip(totals.connections)
        .filter(|(_, connections)| *connections > 0)
        .map(|(protocol, connections)| {
            format!("staged by {protocol} through {}", plural(connections, "FIFO"))
        })
        .collect();
    if moves.is_empty() {
        moves.push("put and get".to_owned());
    }
    if let (Some(ChosenProtocol { protocol, bytes }), Some(first)) = (saved.chosen, moves.first_mut()) {
        first.push_str(&format!(", as {protocol} is chosen for messages of {bytes} bytes"));
    }
    if *instances > 1 {
        moves.push(format!("in {instances} instances"));
    }
    if let Some(tile) = tile {
        moves.push(format!("in tiles of {tile} bytes a chunk"));
    }
    if totals.connections[Protocol::Ll128 as usize] > 0 {
        moves.push("relies on links that keep the order of a warp's stores to 128 bytes".to_owned());
    }
    let saved = format!(
        "{} between blocks, {} implied by others; {} joined to what they follow, {} that nobody reads left out",
        plural(saved.dependences, "dependence"),
        saved.implied,
        plural(saved.fused, "send"),
        plural(saved.pruned, "store"),
    );
    Some((moves.join("; "), saved))
}

/// Everything about one world size.
pub(super) fn whole(size: &CheckedSize) -> String {
    match &size.verdict {
        SizeVerdict::NotAdmitted { why } => format!("{} ranks: not admitted: {why}", size.ranks),
        SizeVerdict::Wrong => format!("{} ranks: wrong", size.ranks),
        SizeVerdict::Right(proved) => {
            let mut text = proved.report.to_string();
            let mut line = |title: &str, what: String| {
                let _ = writeln!(text, "  {title:<11} {what}");
            };
            let way = |name: &str, can: &Result<(), String>| match can {
                Ok(()) => name.to_owned(),
                Err(why) => format!("not {name}: {why}"),
            };
            let ways = [way("in place", &proved.in_place), way("out of place", &proved.out_of_place)];
            line("called", ways.join("; "));
            for schedule in &proved.schedules {
                line("proof", proof(schedule, proved.schedules.len()));
                if let Some((moves, saved)) = movement(schedule) {
                    line("moved", moves);
                    line("waits", saved);
                }
            }
            text.trim_end().to_owned()
        }
    }
}
