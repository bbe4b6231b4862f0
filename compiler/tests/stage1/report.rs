//! The report agrees with figures that are counted chunk by chunk, and with those that are known of named algorithms.

use super::programs;
use super::sketch::*;
use Kind::*;
use insta::assert_snapshot;
use quadrille_compiler::options::ScheduleOptions;
use quadrille_compiler::program::Program;
use quadrille_compiler::program::ids::{Location, Rank};
use quadrille_compiler::program::kind::{Contribution, Expected, Kind};
use quadrille_compiler::report::traffic::{Crossing, Fraction, LinkTraffic};
use quadrille_compiler::report::{self, Report, Unspecified};
use quadrille_compiler::values::order::{ReductionOrder, RingStart};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub(crate) fn report(program: &Program) -> Report {
    report::report(program, &ScheduleOptions::default()).unwrap()
}

/// A value as it is made.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Value {
    Input(u32, u32),
    Sum(Vec<Rc<Value>>),
}

impl Value {
    /// A sum whose first two terms, which may be exchanged, stand in order.
    fn sum(mut terms: Vec<Rc<Value>>) -> Value {
        terms[..2].sort();
        Value::Sum(terms)
    }

    /// The value of the same chunks of the same ranks, were they all chunk 0.
    fn without_chunk(&self) -> Value {
        match self {
            Value::Input(rank, _) => Value::Input(*rank, 0),
            Value::Sum(terms) => Value::sum(terms.iter().map(|term| Rc::new(term.without_chunk())).collect()),
        }
    }
}

/// What a program does, counted chunk by chunk.
struct Counted {
    links: BTreeMap<(u32, u32), u64>,
    hops: usize,
    values: BTreeMap<Location, Rc<Value>>,
}

fn count(program: &Program) -> Counted {
    let shape = &program.shape;
    let mut counted = Counted { links: BTreeMap::new(), hops: 0, values: BTreeMap::new() };
    // The ranks that a chunk's content has been on, along every way that it came: only the longest ones differ.
    let mut ways: BTreeMap<Location, usize> = BTreeMap::new();
    for rank in (0..shape.ranks).map(Rank) {
        for chunk in 0..shape.input_chunks(rank) {
            let at = shape.input_location(rank, chunk);
            counted.values.insert(at, Rc::new(Value::Input(rank.0, chunk)));
        }
    }
    for op in &program.ops {
        let here =
            op.site.on.unwrap_or(if op.sources.len() == 1 { op.sources[0].rank } else { op.dests[0].rank });
        let mut stores = Vec::new();
        for i in 0..op.dests[0].len {
            let mut steps = Vec::new();
            let mut terms = Vec::new();
            for source in &op.sources {
                let at = source.at(i);
                let crosses = at.rank != here;
                if crosses {
                    *counted.links.entry((at.rank.0, here.0)).or_default() += 1;
                }
                steps.push(ways.get(&at).copied().unwrap_or(0) + usize::from(crosses));
                terms.push(Rc::clone(&counted.values[&at]));
            }
            let value = if terms.len() == 1 { terms.remove(0) } else { Rc::new(Value::sum(terms)) };
            for dest in &op.dests {
                let crosses = dest.rank != here;
                if crosses {
                    *counted.links.entry((here.0, dest.rank.0)).or_default() += 1;
                }
                let way = steps.iter().max().unwrap() + usize::from(crosses);
                counted.hops = counted.hops.max(way);
                stores.push((dest.at(i), way, Rc::clone(&value)));
            }
        }
        for (at, way, value) in stores {
            ways.insert(at, way);
            counted.values.insert(at, value);
        }
    }
    counted
}

/// Compares the report with what is counted.
pub(crate) fn compare(program: &Program) {
    let (report, counted) = (report(program), count(program));
    let shape = &program.shape;
    for from in 0..shape.ranks {
        for to in 0..shape.ranks {
            let link = counted.links.get(&(from, to)).copied().unwrap_or(0);
            assert_eq!(report.traffic.link(Rank(from), Rank(to)), link, "{from} to {to} of\n{program}");
        }
        let all = |ours: &dyn Fn(&(u32, u32)) -> u32| -> u64 {
            counted.links.iter().filter(|(pair, _)| ours(pair) == from).map(|(_, chunks)| chunks).sum()
        };
        assert_eq!(report.traffic.sent[from as usize], all(&|pair| pair.0), "{program}");
        assert_eq!(report.traffic.received[from as usize], all(&|pair| pair.1), "{program}");
    }
    assert_eq!(report.hops.longest as usize, counted.hops, "{program}");

    // Values by what they are to be, and those of one rank without their chunks, by the ranks in them.
    let mut same: BTreeMap<Vec<Contribution>, BTreeSet<&Value>> = BTreeMap::new();
    let mut alike: BTreeMap<(Rank, Vec<Rank>), BTreeSet<Value>> = BTreeMap::new();
    let all = |chunk| (0..shape.ranks).map(|r| Contribution { rank: Rank(r), chunk }).collect::<Vec<_>>();
    for (rank, chunk) in shape.outputs() {
        let due = match program.expected(rank, chunk) {
            Expected::Reduced { chunk } => all(chunk),
            Expected::Combined(inputs) => inputs.to_vec(),
            Expected::Copied(_) | Expected::Unspecified => continue,
        };
        let value = &counted.values[&shape.output_location(rank, chunk)];
        let ranks = due.iter().map(|leaf| leaf.rank).collect();
        same.entry(due).or_default().insert(value);
        alike.entry((rank, ranks)).or_default().insert(value.without_chunk());
    }
    let reduction = &report.reduction;
    assert_eq!(reduction.ranks_differ.is_none(), same.values().all(|v| v.len() == 1), "{program}");
    assert_eq!(reduction.chunks_differ.is_none(), alike.values().all(|v| v.len() == 1), "{program}");
    let copies = same.is_empty() || shape.ranks == 1;
    assert_eq!(reduction.order == ReductionOrder::Exact, copies, "{program}");
    if !shape.in_place || copies || report.traffic.bound.is_none() {
        return;
    }
    assert!(report.traffic.busiest().value() >= report.traffic.bound.unwrap().value(), "{program}");
}

#[test]
fn right_programs_of_every_kind() {
    for (_, sketch) in programs::all().into_iter().chain(others()) {
        for ranks in 1..=8 {
            compare(&sketch.program(ranks).unwrap());
        }
    }
}

/// Programs that take detours: over a third rank, through scratch, by gets and puts.
fn others() -> Vec<(&'static str, Sketch)> {
    vec![
        ("all-gather by a third rank", third_rank()),
        ("two-shot through scratch", through_scratch()),
        ("all-reduce in an order of each rank's own", own_order()),
        ("reduce to the root in place", reduce_in_place()),
    ]
}

fn third_rank() -> Sketch {
    sketch(AllGather, &["output[to][r] = input[r][0];"], |r| {
        for from in 0..r.n {
            for to in 0..r.n {
                r.set_all(0, &[], &[output(to, from)], &[input(from, 0)], Some((to + 1) % r.n));
            }
        }
    })
}

fn through_scratch() -> Sketch {
    let lines = &[
        "scratch[c][r] = input[r][c];",
        "output[c][c] = reduce(scratch[c]);",
        "output[..][c] = output[c][c];",
    ];
    sketch(AllReduce, lines, |r| {
        for c in 0..r.n {
            for rank in 0..r.n {
                r.set(0, &[], scratch(c, rank), &[input(rank, c)]);
            }
            r.set(1, &[], output(c, c), &each(r.n, |rank| scratch(c, rank)));
            for rank in (0..r.n).filter(|rank| *rank != c) {
                r.set_all(2, &[], &[output(rank, c)], &[output(c, c)], Some(rank));
            }
        }
    })
    .chunks(|n| n)
    .scratch(8)
}

fn own_order() -> Sketch {
    sketch(AllReduce, &["output[r][..] = input[r][..] + ..;"], |r| {
        for rank in 0..r.n {
            let both = |buffer, rank| range(buffer, rank, 0, 2);
            let sources =
                each(r.n, |hop| both(quadrille_compiler::program::ids::Buffer::Input, (rank + hop) % r.n));
            r.set(0, &[], both(quadrille_compiler::program::ids::Buffer::Output, rank), &sources);
        }
    })
    .chunks(|_| 2)
}

fn reduce_in_place() -> Sketch {
    sketch(Reduce, &["data[r - 1][0] += data[r][0];"], |r| {
        for rank in (1..r.n).rev() {
            r.add(0, &[], data(rank - 1, 0), data(rank, 0));
        }
    })
    .in_place()
}

fn figures(sketch: &Sketch, ranks: u32) -> (Fraction, Fraction, u32) {
    let report = report(&sketch.program(ranks).unwrap());
    (report.traffic.busiest(), report.traffic.bound.unwrap(), report.hops.longest)
}

/// The depth of a binomial tree: a rank is as many hops from the root as its number has ones.
fn most_ones(ranks: u32) -> u32 {
    (0..ranks).map(u32::count_ones).max().unwrap()
}

#[test]
fn named_algorithms() {
    let named = |name: &str| programs::all().into_iter().find(|(known, _)| *known == name).unwrap().1;
    for n in 2..=9_u32 {
        let (wide, log) = (u64::from(n), f64::from(n).log2().ceil() as u32);
        let twice = Fraction::new(2 * (wide - 1), wide);
        let once = Fraction::new(wide - 1, wide);
        let one = Fraction::new(1, 1);
        assert_eq!(figures(&named("ring all-reduce, in place"), n), (twice, twice, 2 * (n - 1)));
        assert_eq!(figures(&named("one-shot all-reduce"), n), (Fraction::new(wide - 1, 1), twice, 1));
        assert_eq!(figures(&named("two-shot all-reduce"), n), (twice, twice, 2));
        assert_eq!(figures(&named("ring all-gather"), n), (once, once, n - 1));
        assert_eq!(figures(&named("direct reduce-scatter"), n), (once, once, 1));
        assert_eq!(figures(&named("pairwise all-to-all"), n), (once, once, 1));
        assert_eq!(figures(&named("chain broadcast"), n), (one, one, n - 1));
        assert_eq!(figures(&named("binomial broadcast, in place"), n).2, most_ones(n));
        assert_eq!(figures(&reduce_in_place(), n), (one, one, n - 1));
        assert_eq!(figures(&third_rank(), n).2, 2);
        let bounds = report(&named("one-shot all-reduce").program(n).unwrap()).hops;
        assert_eq!((bounds.linked, bounds.one_port), (Some(1), Some(log)));
    }
    assert_eq!(
        figures(&named("ring all-reduce, in place"), 1),
        (Fraction::new(0, 1), Fraction::new(0, 1), 0)
    );
}

#[test]
fn orders() {
    let order = |sketch: Sketch, ranks| report(&sketch.program(ranks).unwrap()).reduction.order;
    let ring = |shift| ReductionOrder::Ring { first: RingStart::Shift(shift), up: true };
    let named = |name: &str| programs::all().into_iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!(order(programs::ring_all_reduce(0, 0), 5), ring(1));
    assert_eq!(order(named("ring reduce-scatter, in place"), 4), ring(1));
    assert_eq!(order(named("ring all-reduce, out of place"), 4), ring(0));
    assert_eq!(order(named("one-shot all-reduce"), 4), ReductionOrder::Ranks { at_once: true });
    assert_eq!(order(named("pairwise all-to-all"), 4), ReductionOrder::Exact);
    assert_eq!(order(reduce_in_place(), 4), ReductionOrder::Ring { first: RingStart::Rank(3), up: false });
    let ReductionOrder::Other(tree) = order(named("tree all-reduce, in place"), 4) else { panic!("no tree") };
    assert_eq!(tree.to_string(), "output[0][0] = (r0 + r1) + (r2 + r3)");
    assert!(matches!(
        order(own_order(), 3),
        ReductionOrder::Ring { first: RingStart::Varies, .. } | ReductionOrder::Other(_)
    ));
    let chain =
        sketch(AllReduce, &["data[r][0] += data[r - 1][0];", "data[r][0] = data[RANKS - 1][0];"], |r| {
            for rank in 1..r.n {
                r.add(0, &[], data(rank, 0), data(rank - 1, 0));
            }
            for rank in 0..r.n - 1 {
                r.set(1, &[], data(rank, 0), &[data(r.n - 1, 0)]);
            }
        });
    assert_eq!(order(chain.in_place(), 5), ReductionOrder::Ranks { at_once: false });
}

#[test]
fn the_switch() {
    let two_shot = || programs::all().into_iter().find(|(name, _)| *name == "two-shot all-reduce").unwrap().1;
    for n in 2..=8_u32 {
        let program = two_shot().multimem().program(n).unwrap();
        let report = report(&program);
        let bound = Fraction::new(u64::from(n) + 1, n.into());
        assert_eq!(report.traffic.bound, Some(bound));
        for rank in 0..n as usize {
            assert_eq!(report.traffic.part(report.traffic.sent[rank]), bound);
            assert_eq!(report.traffic.part(report.traffic.received[rank]), bound);
        }
        assert_eq!(
            report.traffic.links(),
            LinkTraffic { all: u64::from(n * (n - 1)), used: 0, most: 0, least: 0 }
        );
        assert_eq!((report.hops.longest, &report.reduction.order), (2, &ReductionOrder::Switch));
        // One rank has each sum made, and all get it.
        assert!(report.reduction.ranks_differ.is_none() && !report.reduction.reproducible());
        let one_shot =
            programs::all().into_iter().find(|(name, _)| *name == "one-shot all-reduce").unwrap().1;
        let report = self::report(&one_shot.multimem().program(n).unwrap());
        assert_eq!(report.traffic.busiest(), Fraction::new(n.into(), 1));
        assert!(report.reduction.ranks_differ.is_some());
    }
    let alone = report(&two_shot().multimem().program(1).unwrap());
    assert_eq!((alone.traffic.most_sent(), alone.hops.longest), (0, 0));
}

#[test]
fn nodes() {
    let ring = report(&programs::ring_all_reduce(0, 0).nodes(2).program(6).unwrap());
    // Two links of the ring join the nodes, one each way: 10 chunks of 6 over each.
    assert_eq!(ring.crossing, Some(Crossing { all: 20, node: 10, rank: 10 }));
    assert_eq!(report(&programs::ring_all_reduce(0, 0).program(6).unwrap()).crossing, None);
    let pairs = programs::all().into_iter().find(|(name, _)| *name == "pairwise all-to-all").unwrap().1;
    let crossing = report(&pairs.nodes(3).program(6).unwrap()).crossing;
    assert_eq!(crossing, Some(Crossing { all: 24, node: 8, rank: 4 }));
}

#[test]
fn what_is_unspecified() {
    let named = |name: &str| programs::all().into_iter().find(|(known, _)| *known == name).unwrap().1;
    let of = |sketch: Sketch| report(&sketch.program(4).unwrap()).unspecified;
    // Of 16 chunks 4 are the output; a ring overwrites all but where it begins.
    let ring = Unspecified { output: 0, rest: 12, overwritten: 8 };
    assert_eq!(of(named("ring reduce-scatter, in place")), ring);
    assert_eq!(of(reduce_in_place()), Unspecified { output: 0, rest: 3, overwritten: 2 });
    assert_eq!(of(named("ring all-reduce, in place")), Unspecified::default());
    let custom = sketch(Custom, &["output[1][0] = input[0][0];", "promises"], |r| {
        r.set(0, &[], output(1, 0), &[input(0, 0)]);
        r.promise(1, output(1, 0), &[input(0, 0)]);
        for rank in [0, 2, 3] {
            r.promise(1, output(rank, 0), &[]);
        }
    });
    assert_eq!(of(custom), Unspecified { output: 3, rest: 0, overwritten: 0 });
}

#[test]
fn text() {
    assert_snapshot!(report(&programs::ring_all_reduce(0, 0).program(8).unwrap()).to_string(), @"
    example: all_reduce, 8 ranks, 8 chunks, in place
      program     112 operations of 2 statements
      traffic     busiest rank sends 1.75, receives 1.75 of the message; lower bound 1.75, met
      links       8 of 56 carry data, each 1.75 of the message
      hops        14 one after the other; lower bound 1 with a link to every rank, 3 with one port
      order       up the ring from the chunk's rank + 1; the same bits on all ranks; depends on the message's size
      buffers     data 8 chunks; no scratch
    ");
    let shown = report(&through_scratch().nodes(2).program(4).unwrap()).to_string();
    assert_snapshot!(shown, @"
    example: all_reduce, 4 ranks, 4 chunks, 2 nodes, 8 scratch chunks
      program     32 operations of 3 statements
      traffic     busiest rank sends 1.5, receives 1.5 of the message; lower bound 1.5, met
      links       12 of 12 carry data, each 0.5 of the message
      nodes       4 of the message cross nodes; the busiest node sends or receives 2, the busiest rank 1
      hops        2 one after the other; lower bound 1 with a link to every rank, 2 with one port
      order       by rank, rounded once; the same bits on all ranks; independent of the message's size
      buffers     input 4 chunks; output 4 chunks; scratch 8 chunks
    ");
    assert_snapshot!(report(&reduce_in_place().program(3).unwrap()).to_string(), @"
    example: reduce, 3 ranks, 1 chunk, in place
      program     2 operations of 1 statement
      traffic     busiest rank sends 1, receives 1 of the message; lower bound 1, met
      links       2 of 6 carry data, each 1 of the message
      hops        2 one after the other; lower bound 1 with a link to every rank, 2 with one port
      order       up the ring from rank 1; the same bits on all ranks; independent of the message's size
      buffers     data 1 chunk; no scratch
      unspecified 2 chunks of data beyond the output, 1 overwritten
    ");
}
