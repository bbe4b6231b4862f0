//! A timeline as a Chrome trace (Trace Event Format, JSON object form), which ui.perfetto.dev shows: a process a rank, a
//! thread a thread block, a slice a step; arrows from signals to waits; a process with a counter a link. Times are
//! virtual microseconds.

use super::report::SimReport;
use quadrille_compiler::program::ids::BlockId;
use quadrille_compiler::schedule::{Action, Schedule};
use quadrille_runtime::{LinkUse, Picoseconds, Timeline};
use serde_json::{Value, json};

fn microseconds(time: Picoseconds) -> f64 {
    time as f64 / 1e6
}

/// The file's text.
pub(super) fn trace(timeline: &Timeline, schedule: &Schedule, report: &SimReport) -> Vec<u8> {
    let mut named = Vec::new();
    for rank in 0..report.ranks {
        named.push(json!({ "ph": "M", "name": "process_name", "pid": rank, "args": { "name": format!("rank {rank}") } }));
        named.push(
            json!({ "ph": "M", "name": "process_sort_index", "pid": rank, "args": { "sort_index": rank } }),
        );
    }
    let links = report.ranks;
    named.push(json!({ "ph": "M", "name": "process_name", "pid": links, "args": { "name": "links (virtual GB/s)" } }));
    let mut events: Vec<(Picoseconds, Value)> = Vec::new();
    for block in &timeline.blocks {
        let (pid, tid) = (block.rank.0, block.block.0);
        if block.call == 0 {
            let name = json!({ "name": format!("block {tid}") });
            named.push(json!({ "ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": name }));
        }
        let slice = |name: &str, category: &str, start: Picoseconds, end: Picoseconds, args: Value| {
            let (ts, dur) = (microseconds(start), microseconds(end.saturating_sub(start)));
            json!({ "ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
                    "args": args })
        };
        let whole = slice(&report.title, "call", block.start, block.end, json!({ "call": block.call }));
        events.push((block.start, whole));
        let place = BlockId { rank: block.rank, block: block.block };
        let planned = schedule.places().find(|(at, _)| *at == place).map(|(_, planned)| &planned.steps);
        for step in &block.steps {
            let found = planned.and_then(|steps| steps.get(step.step as usize));
            let category = match found.map(|found| &found.action) {
                Some(Action::Wait(_)) => "wait",
                Some(Action::Signal(_)) => "signal",
                Some(Action::Move { .. }) => "move",
                _ => "sync",
            };
            let name = found.map_or_else(|| step.what.clone(), |found| found.action.to_string());
            let args = json!({ "statement": step.what, "step": step.step });
            events.push((step.start, slice(&name, category, step.start, step.end, args)));
        }
    }
    for (id, message) in timeline.messages.iter().enumerate() {
        let ends = [("s", message.from, message.sent), ("f", message.to, message.seen)];
        for (ph, block, at) in ends {
            let Some(block) = timeline.blocks.get(block) else { continue };
            let mut event = json!({ "ph": ph, "name": "signal", "cat": "signal", "id": id, "pid": block.rank.0,
                                    "tid": block.block.0, "ts": microseconds(at) });
            if ph == "f" {
                // It ends at the slice around it, not at the next one.
                event["bp"] = "e".into();
            }
            events.push((at, event));
        }
    }
    for LinkUse { from, to, interval, bytes } in &timeline.links {
        let counter = |at: Picoseconds, gbps: f64| {
            let name = format!("r{from} -> r{to}");
            let value = json!({ "ph": "C", "name": name, "pid": links, "ts": microseconds(at), "args": { "GB/s": gbps } });
            (at, value)
        };
        let mut last = f64::NAN;
        for (i, &bytes) in bytes.iter().chain([&0]).enumerate() {
            // Bytes a nanosecond.
            let gbps = bytes as f64 * 1000.0 / *interval as f64;
            if gbps != last {
                events.push(counter(i as u64 * interval, gbps));
            }
            last = gbps;
        }
    }
    // Slices that begin together stand in the order in which they nest.
    events.sort_by_key(|(at, _)| *at);
    named.extend(events.into_iter().map(|(_, event)| event));
    let about = json!({ "clock": super::CLOCK, "topology": report.topology() });
    let whole = json!({ "traceEvents": named, "displayTimeUnit": "ns", "otherData": about });
    whole.to_string().into_bytes()
}
