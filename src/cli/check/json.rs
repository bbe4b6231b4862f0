//! The JSON of `check`; docs/cli.md lists the fields.

use super::{CheckedSchedule, CheckedSize, Proved, ScheduleVerdict, SizeVerdict};
use quadrille_compiler::options::Protocol;
use quadrille_compiler::program::ids::{Buffer, Rank};
use quadrille_compiler::report::Report;
use quadrille_compiler::report::hops::Hops;
use quadrille_compiler::report::traffic::{Crossing, LinkTraffic, Traffic};
use quadrille_compiler::values::order::{Example, Reduction, ReductionOrder, RingStart};
use serde_json::{Map, Value, json};

/// One world size.
pub(super) fn size(size: &CheckedSize) -> Value {
    let params: Map<String, Value> =
        size.params.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut object = json!({ "ranks": size.ranks, "root": size.root, "params": params });
    let more = match &size.verdict {
        SizeVerdict::NotAdmitted { why } => json!({ "verdict": "not-admitted", "why": why }),
        SizeVerdict::Wrong => json!({ "verdict": "wrong" }),
        SizeVerdict::Right(proved) => right(proved),
    };
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

fn right(proved: &Proved) -> Value {
    let verdict = match (proved.whole(), proved.wrong()) {
        (true, _) => "proved",
        (false, true) => "wrong",
        (false, false) => "waits",
    };
    json!({
        "verdict": verdict,
        "statements": proved.report.statements,
        "operations": proved.report.operations,
        "report": report(&proved.report),
        "called": {
            "in_place": proved.in_place.is_ok(),
            "out_of_place": proved.out_of_place.is_ok(),
            "why_not": proved.in_place.as_ref().err().or(proved.out_of_place.as_ref().err()),
        },
        "schedules": proved.schedules.iter().map(schedule).collect::<Vec<_>>(),
    })
}

fn schedule(schedule: &CheckedSchedule) -> Value {
    let number = schedule.number;
    match &schedule.outcome {
        ScheduleVerdict::Proved { totals, saved, tile, instances, proof_ms } => {
            let connections: Map<String, Value> = Protocol::ALL
                .iter()
                .zip(totals.connections)
                .map(|(protocol, connections)| (protocol.name().to_owned(), json!(connections)))
                .collect();
            json!({
                "schedule": number, "verdict": "proved",
                "blocks": totals.blocks, "steps": totals.steps, "waits": totals.waits,
                "dependences": saved.dependences, "implied": saved.implied, "fused": saved.fused, "pruned": saved.pruned,
                "chosen": saved.chosen.map(|chosen| chosen.protocol.name()),
                "connections": connections, "tile": tile, "instances": instances, "proof_ms": proof_ms,
            })
        }
        ScheduleVerdict::Waits { why } => json!({ "schedule": number, "verdict": "waits", "why": why }),
        ScheduleVerdict::Wrong => json!({ "schedule": number, "verdict": "wrong" }),
    }
}

fn report(report: &Report) -> Value {
    let traffic = &report.traffic;
    let LinkTraffic { all, used, most, least } = traffic.links();
    let chunks: Map<String, Value> = Buffer::ALL
        .into_iter()
        .map(|buffer| (buffer.name().to_owned(), json!(report.chunks(buffer))))
        .filter(|(_, chunks)| chunks != 0)
        .collect();
    let Hops { longest, linked, one_port } = report.hops;
    let crossing =
        report.crossing.map(|Crossing { all, node, rank }| json!({ "all": all, "node": node, "rank": rank }));
    json!({
        "message": traffic.message,
        "sent": traffic.sent,
        "received": traffic.received,
        "busiest": traffic.busiest().value(),
        "bound": traffic.bound.map(|bound| bound.value()),
        "multimem": traffic.multimem,
        "links": { "all": all, "used": used, "most": most, "least": least, "chunks": matrix(traffic) },
        "crossing": crossing,
        "hops": { "longest": longest, "linked": linked, "one_port": one_port },
        "reduction": reduction(&report.reduction),
        "buffers": chunks,
        "unspecified": {
            "output": report.unspecified.output,
            "rest": report.unspecified.rest,
            "overwritten": report.unspecified.overwritten,
        },
    })
}

/// By sending rank, then receiving rank.
fn matrix(traffic: &Traffic) -> Vec<Vec<u64>> {
    let ranks = traffic.sent.len() as u32;
    let row = |from| (0..ranks).map(|to| traffic.link(Rank(from), Rank(to))).collect();
    (0..ranks).map(row).collect()
}

fn reduction(reduction: &Reduction) -> Value {
    let order = match &reduction.order {
        ReductionOrder::Exact => "copies",
        ReductionOrder::Switch => "switch",
        ReductionOrder::Ranks { at_once: true } => "ranks-at-once",
        ReductionOrder::Ranks { at_once: false } => "ranks",
        ReductionOrder::Ring { up: true, .. } => "ring-up",
        ReductionOrder::Ring { up: false, .. } => "ring-down",
        ReductionOrder::Other(_) => "other",
    };
    let first = match reduction.order {
        ReductionOrder::Ring { first: RingStart::Rank(rank), .. } => json!({ "rank": rank }),
        ReductionOrder::Ring { first: RingStart::Shift(shift), .. } => json!({ "shift": shift }),
        _ => Value::Null,
    };
    let shown = match &reduction.order {
        ReductionOrder::Other(shown) => example(shown),
        _ => Value::Null,
    };
    let pair = |pair: &Option<[Example; 2]>| pair.as_ref().map(|pair| pair.each_ref().map(example));
    json!({
        "order": order,
        "first": first,
        "example": shown,
        "reproducible": reduction.reproducible(),
        "ranks_differ": pair(&reduction.ranks_differ),
        "chunks_differ": pair(&reduction.chunks_differ),
    })
}

fn example(example: &Example) -> Value {
    json!({ "rank": example.rank.0, "chunk": example.chunk, "expression": example.expression })
}
