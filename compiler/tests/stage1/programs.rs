//! Right programs of every kind, in and out of place.

use super::sketch::*;
use Kind::*;
use quadrille_compiler::program::ids::Buffer;
use quadrille_compiler::program::kind::Kind;

/// Every right program with its name.
pub(crate) fn all() -> Vec<(&'static str, Sketch)> {
    vec![
        ("ring all-reduce, in place", ring_all_reduce(0, 0)),
        ("ring all-reduce, out of place", ring_all_reduce_out_of_place()),
        ("one-shot all-reduce", one_shot()),
        ("two-shot all-reduce", two_shot()),
        ("tree all-reduce, in place", tree_all_reduce()),
        ("ring all-gather", ring_all_gather()),
        ("two-way all-gather", two_way_all_gather()),
        ("direct all-gather, in place", direct_all_gather()),
        ("direct reduce-scatter", direct_reduce_scatter()),
        ("ring reduce-scatter, in place", ring_reduce_scatter()),
        ("pairwise all-to-all", all_to_all()),
        ("chain broadcast", chain_broadcast()),
        ("binomial broadcast, in place", binomial_broadcast()),
        ("chain reduce to rank 0", chain_reduce()),
        ("direct gather", direct_gather()),
        ("direct scatter", direct_scatter()),
        ("send to the next rank", send_recv()),
        ("shift by two, custom", shift_by_two()),
        ("all-to-all in place through scratch", all_to_all_in_place()),
    ]
}

/// The ring of the language's introduction; its laps are cut short at the end by `first` and `second` hops.
pub(crate) fn ring_all_reduce(first: i64, second: i64) -> Sketch {
    let lines = &["data[to][c] += data[from][c];", "data[to][c] = data[from][c];"];
    sketch(AllReduce, lines, move |r| {
        for c in 0..r.n {
            for hop in 1..r.n - first {
                let (from, to) = ((c + hop) % r.n, (c + hop + 1) % r.n);
                r.add(0, &[("c", c), ("hop", hop)], data(to, c), data(from, c));
            }
            for hop in 0..r.n - 1 - second {
                let (from, to) = ((c + hop) % r.n, (c + hop + 1) % r.n);
                r.set(1, &[("c", c), ("hop", hop)], data(to, c), &[data(from, c)]);
            }
        }
    })
    .in_place()
    .chunks(|n| n)
}

fn ring_all_reduce_out_of_place() -> Sketch {
    let lines = &[
        "output[c][c] = input[c][c];",
        "output[to][c] = input[to][c] + output[from][c];",
        "output[to][c] = output[from][c];",
    ];
    sketch(AllReduce, lines, |r| {
        for c in 0..r.n {
            r.set(0, &[("c", c)], output(c, c), &[input(c, c)]);
            for hop in 0..r.n - 1 {
                let (from, to) = ((c + hop) % r.n, (c + hop + 1) % r.n);
                r.set(1, &[("c", c), ("hop", hop)], output(to, c), &[input(to, c), output(from, c)]);
            }
            for hop in r.n - 1..2 * r.n - 2 {
                let (from, to) = ((c + hop) % r.n, (c + hop + 1) % r.n);
                r.set(2, &[("c", c), ("hop", hop)], output(to, c), &[output(from, c)]);
            }
        }
    })
    .chunks(|n| n)
}

pub(crate) fn one_shot() -> Sketch {
    sketch(AllReduce, &["output[r][0] = reduce(input[..][0]);"], |r| {
        for rank in 0..r.n {
            r.set(0, &[("r", rank)], output(rank, 0), &each(r.n, |peer| input(peer, 0)));
        }
    })
}

fn two_shot() -> Sketch {
    sketch(AllReduce, &["output[..][c] = reduce(input[..][c]);"], |r| {
        for c in 0..r.n {
            let (dests, sources) = (each(r.n, |peer| output(peer, c)), each(r.n, |peer| input(peer, c)));
            r.set_all(0, &[("c", c)], &dests, &sources, Some(c));
        }
    })
    .chunks(|n| n)
}

fn tree_all_reduce() -> Sketch {
    let lines = &["data[r][..] += data[r + step][..];", "data[r + step][..] = data[r][..];"];
    sketch(AllReduce, lines, |r| {
        let all = |rank| range(Buffer::Data, rank, 0, 3);
        let steps: Vec<i64> = (0..8).map(|i| 1 << i).filter(|step| *step < r.n).collect();
        for &step in &steps {
            for rank in (0..r.n - step).step_by(2 * step as usize) {
                r.add(0, &[("step", step), ("r", rank)], all(rank), all(rank + step));
            }
        }
        for &step in steps.iter().rev() {
            for rank in (0..r.n - step).step_by(2 * step as usize) {
                r.set(1, &[("step", step), ("r", rank)], all(rank + step), &[all(rank)]);
            }
        }
    })
    .in_place()
    .chunks(|_| 3)
}

/// Every rank's part goes both ways.
fn two_way_all_gather() -> Sketch {
    let lines = &["output[c][c] = input[c][0];", "output[to][c] = output[from][c];"];
    sketch(AllGather, lines, |r| {
        for c in 0..r.n {
            r.set(0, &[("c", c)], output(c, c), &[input(c, 0)]);
            for hop in 0..r.n / 2 {
                let (from, to) = ((c + hop) % r.n, (c + hop + 1) % r.n);
                r.set(1, &[("c", c), ("hop", hop)], output(to, c), &[output(from, c)]);
            }
            for hop in 0..(r.n - 1) / 2 {
                let (from, to) = ((c - hop).rem_euclid(r.n), (c - hop - 1).rem_euclid(r.n));
                r.set(1, &[("c", c), ("hop", hop)], output(to, c), &[output(from, c)]);
            }
        }
    })
}

fn ring_all_gather() -> Sketch {
    let lines = &["output[r][2*r..2*r + 2] = input[r][0..2];", "output[to][c] = output[from][c];"];
    sketch(AllGather, lines, |r| {
        for rank in 0..r.n {
            let own = range(Buffer::Output, rank, 2 * rank, 2 * rank + 2);
            r.set(0, &[("r", rank)], own, &[range(Buffer::Input, rank, 0, 2)]);
        }
        for c in 0..2 * r.n {
            for hop in 0..r.n - 1 {
                let (from, to) = ((c / 2 + hop) % r.n, (c / 2 + hop + 1) % r.n);
                r.set(1, &[("c", c), ("hop", hop)], output(to, c), &[output(from, c)]);
            }
        }
    })
    .chunks(|_| 2)
}

fn direct_all_gather() -> Sketch {
    sketch(AllGather, &["data[to][r] = data[r][r];"], |r| {
        for rank in 0..r.n {
            for hop in 1..r.n {
                let to = (rank + hop) % r.n;
                r.set(0, &[("r", rank), ("hop", hop)], data(to, rank), &[data(rank, rank)]);
            }
        }
    })
    .in_place()
}

fn direct_reduce_scatter() -> Sketch {
    sketch(ReduceScatter, &["output[r][c] = reduce(input[..][2*r + c]);"], |r| {
        for rank in 0..r.n {
            for c in 0..2 {
                let sources = each(r.n, |peer| input(peer, 2 * rank + c));
                r.set(0, &[("r", rank), ("c", c)], output(rank, c), &sources);
            }
        }
    })
    .chunks(|_| 2)
}

fn ring_reduce_scatter() -> Sketch {
    sketch(ReduceScatter, &["data[to][u] += data[from][u];"], |r| {
        for u in 0..r.n {
            for hop in 1..r.n {
                let (from, to) = ((u + hop) % r.n, (u + hop + 1) % r.n);
                r.add(0, &[("u", u), ("hop", hop)], data(to, u), data(from, u));
            }
        }
    })
    .in_place()
}

fn all_to_all() -> Sketch {
    sketch(AllToAll, &["output[to][from] = input[from][to];"], |r| {
        for from in 0..r.n {
            for to in 0..r.n {
                r.set(0, &[("from", from), ("to", to)], output(to, from), &[input(from, to)]);
            }
        }
    })
}

fn chain_broadcast() -> Sketch {
    let lines = &["output[0][c] = input[0][c];", "output[r][c] = output[r - 1][c];"];
    sketch(Broadcast, lines, |r| {
        for c in 0..2 {
            r.set(0, &[("c", c)], output(0, c), &[input(0, c)]);
            for rank in 1..r.n {
                r.set(1, &[("c", c), ("r", rank)], output(rank, c), &[output(rank - 1, c)]);
            }
        }
    })
    .chunks(|_| 2)
}

fn binomial_broadcast() -> Sketch {
    sketch(Broadcast, &["data[r + have][0] = data[r][0];"], |r| {
        let mut have = 1;
        while have < r.n {
            for rank in 0..have.min(r.n - have) {
                r.set(0, &[("have", have), ("r", rank)], data(rank + have, 0), &[data(rank, 0)]);
            }
            have *= 2;
        }
    })
    .in_place()
}

fn chain_reduce() -> Sketch {
    let lines =
        &["scratch[r][..] = input[r][..] + scratch[r + 1][..];", "output[0][..] = input[0][..] + ..;"];
    sketch(Reduce, lines, |r| {
        let all = |buffer, rank| range(buffer, rank, 0, 2);
        for rank in (1..r.n).rev() {
            let mut sources = vec![all(Buffer::Input, rank)];
            sources.extend((rank + 1 < r.n).then(|| all(Buffer::Scratch, rank + 1)));
            r.set(0, &[("r", rank)], all(Buffer::Scratch, rank), &sources);
        }
        let mut sources = vec![all(Buffer::Input, 0)];
        sources.extend((r.n > 1).then(|| all(Buffer::Scratch, 1)));
        r.set(1, &[], all(Buffer::Output, 0), &sources);
    })
    .chunks(|_| 2)
    .scratch(2)
}

fn direct_gather() -> Sketch {
    sketch(Gather, &["output[0][r] = input[r][0];"], |r| {
        for rank in 0..r.n {
            r.set(0, &[("r", rank)], output(0, rank), &[input(rank, 0)]);
        }
    })
}

fn direct_scatter() -> Sketch {
    sketch(Scatter, &["output[r][..] = input[0][2*r..2*r + 2];"], |r| {
        for rank in 0..r.n {
            let from = range(Buffer::Input, 0, 2 * rank, 2 * rank + 2);
            r.set(0, &[("r", rank)], range(Buffer::Output, rank, 0, 2), &[from]);
        }
    })
    .chunks(|_| 2)
}

fn send_recv() -> Sketch {
    sketch(SendRecv, &["output[(r + 1) % RANKS][0] = input[r][0];"], |r| {
        for rank in 0..r.n {
            r.set(0, &[("r", rank)], output((rank + 1) % r.n, 0), &[input(rank, 0)]);
        }
    })
}

/// Rank r gets the sum of its own input and that of the rank two before; rank 0 anything.
fn shift_by_two() -> Sketch {
    let lines =
        &["output[r][0] = input[r][0] + input[r - 2][0];", "expect!(..);", "unspecified!(output[0][0]);"];
    sketch(Custom, lines, |r| {
        for rank in 1..r.n {
            let sources = [input(rank, 0), input((rank + r.n - 2) % r.n, 0)];
            r.set(0, &[("r", rank)], output(rank, 0), &sources);
            r.promise(1, output(rank, 0), &sources);
        }
        r.promise(2, output(0, 0), &[]);
    })
}

/// What is exchanged is read on both sides before anything is stored.
fn all_to_all_in_place() -> Sketch {
    sketch(AllToAll, &["(data[a][b], data[b][a]) = (data[b][a], data[a][b]);"], |r| {
        for a in 0..r.n {
            for b in a + 1..r.n {
                r.together(0, &[(vec![data(b, a)], vec![data(a, b)]), (vec![data(a, b)], vec![data(b, a)])]);
            }
        }
    })
    .in_place()
}
