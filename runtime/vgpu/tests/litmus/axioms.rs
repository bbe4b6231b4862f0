//! The axioms of the PTX memory model (PTX ISA, "Memory Consistency Model"), by brute force: whether an execution
//! exists that gives an outcome. For straight-line programs of whole words, a few accesses each.
//!
//! An atomic is one event that reads and writes, so that atomicity is part of coherence of each location.

use super::machine::{Outcome, Placement, Program, split};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Load,
    Store,
    Atomic,
    Fence,
}

#[derive(Clone, Debug)]
struct Event {
    /// None of the writes that initialize.
    thread: Option<(usize, Placement)>,
    sort: Sort,
    location: usize,
    strong: bool,
    acquires: bool,
    releases: bool,
    sc: bool,
    /// 0 block, 1 GPU, 2 system.
    scope: u8,
    read: u32,
    written: u32,
}

impl Event {
    fn reads(&self) -> bool {
        matches!(self.sort, Sort::Load | Sort::Atomic)
    }

    fn writes(&self) -> bool {
        matches!(self.sort, Sort::Store | Sort::Atomic)
    }

    fn fence(&self) -> bool {
        self.sort == Sort::Fence
    }

    fn includes(&self, other: &Event) -> bool {
        let (Some((_, a)), Some((_, b))) = (self.thread, other.thread) else { return true };
        match self.scope {
            0 => (a.rank, a.block) == (b.rank, b.block),
            1 => a.rank == b.rank,
            _ => true,
        }
    }
}

/// A relation between events: a row of successors for each.
type Relation = Vec<u64>;

fn has(relation: &Relation, a: usize, b: usize) -> bool {
    relation[a] >> b & 1 != 0
}

fn close(relation: &mut Relation) {
    for k in 0..relation.len() {
        for a in 0..relation.len() {
            if has(relation, a, k) {
                relation[a] |= relation[k];
            }
        }
    }
}

fn cyclic(relation: &Relation) -> bool {
    let mut closed = relation.clone();
    close(&mut closed);
    (0..closed.len()).any(|a| has(&closed, a, a))
}

/// All orders of some events.
fn orders(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(at);
        all.extend(orders(&rest).into_iter().map(|mut order| {
            order.insert(0, first);
            order
        }));
    }
    all
}

/// The events of a program in an outcome; `None` where the text has other instructions than the axioms know.
fn events(program: &Program, outcome: &Outcome) -> Option<Vec<Event>> {
    let blank = Event {
        thread: None,
        sort: Sort::Store,
        location: 0,
        strong: true,
        acquires: false,
        releases: false,
        sc: false,
        scope: 2,
        read: 0,
        written: 0,
    };
    let mut events: Vec<Event> =
        (0..program.locations.len()).map(|location| Event { location, ..blank.clone() }).collect();
    let mut first = 0;
    for (number, thread) in program.threads.iter().enumerate() {
        thread.at.lane?;
        for line in &thread.lines {
            let (guard, mnemonic, operands) = split(line);
            let parts: Vec<&str> = mnemonic.split('.').collect();
            let named = |part: &str| parts.contains(&part);
            let sort = match parts[0] {
                "ld" => Sort::Load,
                "st" => Sort::Store,
                "atom" => Sort::Atomic,
                "fence" => Sort::Fence,
                _ => return None,
            };
            if !guard.is_empty() || named("v2") || named("v4") || named("shared") || named("proxy") {
                return None;
            }
            let strong = ["relaxed", "acquire", "release", "acq_rel", "volatile"].iter().any(|p| named(p));
            let mut event = Event {
                thread: Some((number, thread.at)),
                sort,
                strong: strong || matches!(sort, Sort::Fence | Sort::Atomic),
                acquires: named("acquire") || named("acq_rel") || named("sc"),
                releases: named("release") || named("acq_rel") || named("sc"),
                sc: named("sc"),
                scope: if named("cta") {
                    0
                } else if named("gpu") {
                    1
                } else {
                    2
                },
                ..blank.clone()
            };
            if sort != Sort::Fence {
                let name = operands.split(['[', ']']).nth(1)?;
                event.location = program.locations.iter().position(|l| l == name)?;
                let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
                if event.reads() {
                    let register: usize = operands[0].strip_prefix('r')?.parse().ok()?;
                    event.read = outcome.results[first + register];
                }
                if event.writes() {
                    let value: u32 = operands.last()?.parse().ok()?;
                    event.written = match (sort, parts.last()) {
                        (Sort::Store, _) | (_, Some(&"exch")) => value,
                        (_, Some(&"add")) => event.read.wrapping_add(value),
                        _ => return None,
                    };
                }
            }
            events.push(event);
        }
        first += thread.results;
    }
    (events.len() <= 64).then_some(events)
}

/// Whether the axioms allow the outcome; `None` if the program is none they speak of.
pub(crate) fn allowed(program: &Program, outcome: &Outcome) -> Option<bool> {
    let events = events(program, outcome)?;
    let n = events.len();
    let pairs = |holds: &dyn Fn(usize, usize) -> bool| -> Relation {
        (0..n).map(|a| (0..n).filter(|&b| holds(a, b)).fold(0, |row, b| row | 1 << b)).collect()
    };
    let same_place = |a: usize, b: usize| {
        !events[a].fence() && !events[b].fence() && events[a].location == events[b].location
    };
    // What initializes comes before everything.
    let po = pairs(&|a, b| {
        a < b
            && match (events[a].thread, events[b].thread) {
                (None, Some(_)) => true,
                (Some((a, _)), Some((b, _))) => a == b,
                _ => false,
            }
    });
    let strong = pairs(&|a, b| {
        let (x, y) = (&events[a], &events[b]);
        let together = x.fence() || y.fence() || x.location == y.location;
        a != b
            && together
            && (has(&po, a, b) || has(&po, b, a) || x.strong && y.strong && x.includes(y) && y.includes(x))
    });
    let reads: Vec<usize> = (0..n).filter(|&e| events[e].reads()).collect();
    // For each read, the writes it may read from.
    let sources: Vec<Vec<usize>> = reads
        .iter()
        .map(|&r| {
            let gives = |&w: &usize| {
                w != r
                    && events[w].writes()
                    && same_place(w, r)
                    && events[w].written == events[r].read
                    && !has(&po, r, w)
            };
            (0..n).filter(gives).collect()
        })
        .collect();
    let coherence: Vec<Vec<Vec<usize>>> = (0..program.locations.len())
        .map(|l| {
            let writes: Vec<usize> = (program.locations.len()..n)
                .filter(|&e| events[e].writes() && events[e].location == l)
                .collect();
            let mut found = orders(&writes);
            found.iter_mut().for_each(|order| order.insert(0, l));
            found.retain(|order| events[*order.last().unwrap()].written == outcome.last[l]);
            found
        })
        .collect();
    let fences = orders(&(0..n).filter(|&e| events[e].sc).collect::<Vec<_>>());
    let mut from = vec![0; reads.len()];
    if sources.iter().any(Vec::is_empty) {
        return Some(false);
    }
    loop {
        let read_from: Vec<(usize, usize)> =
            reads.iter().zip(&sources).zip(&from).map(|((&r, sources), &at)| (sources[at], r)).collect();
        let witness = Witness { events: &events, po: &po, strong: &strong, read_from: &read_from };
        if witness.exists(&coherence, &fences) {
            return Some(true);
        }
        let Some(next) = (0..from.len()).find(|&i| from[i] + 1 < sources[i].len()) else {
            return Some(false);
        };
        from[..next].fill(0);
        from[next] += 1;
    }
}

struct Witness<'w> {
    events: &'w [Event],
    po: &'w Relation,
    /// Morally strong pairs.
    strong: &'w Relation,
    read_from: &'w [(usize, usize)],
}

impl Witness<'_> {
    fn exists(&self, coherence: &[Vec<Vec<usize>>], fences: &[Vec<usize>]) -> bool {
        fences.iter().any(|fences| {
            let Some(cause) = self.causality(fences) else { return false };

            let mut at = vec![0; coherence.len()];
            if coherence.iter().any(Vec::is_empty) {
                return false;
            }
            loop {
                let orders: Vec<&Vec<usize>> = coherence.iter().zip(&at).map(|(all, &at)| &all[at]).collect();
                if self.coherent(&orders, &cause) {
                    return true;
                }
                let Some(next) = (0..at.len()).find(|&i| at[i] + 1 < coherence[i].len()) else {
                    return false;
                };
                at[..next].fill(0);
                at[next] += 1;
            }
        })
    }

    /// Causality order, unless the order of fences contradicts them.
    fn causality(&self, fences: &[usize]) -> Option<Relation> {
        let n = self.events.len();
        let strong = |a, b| has(self.strong, a, b);
        // Observation: a read sees a write, through atomics that saw it.
        let mut observed: Relation = vec![0; n];
        for &(w, r) in self.read_from {
            if strong(w, r) {
                observed[w] |= 1 << r;
            }
        }
        let mut through = observed.clone();
        for _ in 0..n {
            for w in 0..n {
                for z in 0..n {
                    if has(&through, w, z) && self.events[z].sort == Sort::Atomic {
                        through[w] |= observed[z];
                    }
                }
            }
        }
        let place = |a: usize, b: usize| self.events[a].location == self.events[b].location;
        // Release patterns: first operation, write. Acquire patterns: read, last operation.
        let mut releases = Vec::new();
        let mut acquires = Vec::new();
        for (a, x) in self.events.iter().enumerate().filter(|(_, x)| x.thread.is_some()) {
            for (b, y) in self.events.iter().enumerate().filter(|(_, y)| y.thread.is_some()) {
                let then = has(self.po, a, b);
                if y.writes() && y.strong && x.releases {
                    let own = a == b;
                    let later = then && (x.fence() || x.writes() && place(a, b));
                    if own || later {
                        releases.push((a, b));
                    }
                }
                if x.reads() && x.strong && y.acquires {
                    let own = a == b;
                    let later = then && (y.fence() || y.reads() && place(a, b));
                    if own || later {
                        acquires.push((a, b));
                    }
                }
            }
        }
        let mut base = self.po.clone();
        for &(first, write) in &releases {
            for &(read, last) in &acquires {
                let (f, l) = (&self.events[first], &self.events[last]);
                let mutual = f.includes(l) && l.includes(f);
                if has(&through, write, read) && mutual {
                    base[first] |= 1 << last;
                }
            }
        }
        let mut order: Relation = vec![0; n];
        for (at, &f) in fences.iter().enumerate() {
            for &g in &fences[at + 1..] {
                if strong(f, g) {
                    order[f] |= 1 << g;
                    base[f] |= 1 << g;
                }
            }
        }
        close(&mut base);
        let mut cause = base.clone();
        for w in 0..n {
            for z in 0..n {
                if has(&through, w, z) {
                    cause[w] |= base[z];
                }
            }
        }
        let contradicts = |f: usize| (0..n).any(|g| has(&order, f, g) && has(&cause, g, f));
        (!fences.iter().any(|&f| contradicts(f))).then_some(cause)
    }

    fn coherent(&self, orders: &[&Vec<usize>], cause: &Relation) -> bool {
        let n = self.events.len();
        let mut after: Relation = vec![0; n];
        for order in orders {
            for (at, &w) in order.iter().enumerate() {
                order[at + 1..].iter().for_each(|&later| after[w] |= 1 << later);
            }
        }
        let mut seen: Relation = vec![0; n];
        let mut before: Relation = vec![0; n];
        for &(w, r) in self.read_from {
            seen[w] |= 1 << r;
            before[r] |= after[w] & !(1 << r);
        }
        for a in 0..n {
            for b in 0..n {
                let contradicted = has(cause, b, a);
                // Coherence: writes in causality order are in coherence order.
                if has(&after, a, b) && contradicted {
                    return false;
                }
                // Causality: nothing is read against it.
                if (has(&seen, a, b) || has(&before, a, b)) && contradicted {
                    return false;
                }
            }
        }
        // Each location on its own is sequentially consistent as far as its accesses are morally strong.
        let mut all: Relation = vec![0; n];
        for a in 0..n {
            all[a] = (seen[a] | before[a] | after[a]) & self.strong[a];
            for b in 0..n {
                let (x, y) = (&self.events[a], &self.events[b]);
                if has(self.po, a, b) && !x.fence() && !y.fence() && x.location == y.location {
                    all[a] |= 1 << b;
                }
            }
        }
        !cyclic(&all)
    }
}
