//! Basic blocks, and where diverged paths meet again: their immediate post-dominators.
//!
//! Algorithm: Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm", on the reversed graph.

use crate::isa::{NEVER, PtxFunction, PtxOp};
use crate::registers::Index;

/// Successors of the block that ends with `code[end]`; `None` stands for the end of the function.
fn successors<R: Index>(function: &PtxFunction<R>, end: usize, out: &mut Vec<Option<usize>>) {
    out.clear();
    let inst = &function.code[end];
    let next = (end + 1 < function.code.len()).then_some(end + 1);
    match inst.op {
        PtxOp::Branch(target) => {
            out.push(Some(target as usize));
            if inst.guarded() {
                out.push(next);
            }
        }
        PtxOp::BranchIndexed(_, table) => {
            out.extend(function.tables[table as usize].iter().map(|&t| Some(t as usize)));
            if inst.guarded() {
                out.push(next);
            }
        }
        PtxOp::Ret | PtxOp::Exit | PtxOp::Trap => {
            out.push(None);
            if inst.guarded() {
                out.push(next);
            }
        }
        _ => out.push(next),
    }
}

fn ends_block<R>(op: &PtxOp<R>) -> bool {
    matches!(op, PtxOp::Branch(_) | PtxOp::BranchIndexed(..) | PtxOp::Ret | PtxOp::Exit | PtxOp::Trap)
}

/// Edges and steps after which the search is given up: texts that compilers write need a small part of them.
const MAX_EDGES: usize = 1 << 22;
const MAX_STEPS: u64 = 1 << 27;

/// The basic blocks of a function and how control passes between them. Node `len()` is the end of the function.
#[derive(Debug)]
pub(crate) struct FlowGraph {
    /// First and last instruction of each block.
    pub(crate) starts: Vec<usize>,
    pub(crate) ends: Vec<usize>,
    /// Ascending, each once.
    succ: Vec<Vec<usize>>,
    /// Of the end of the function, too.
    pub(crate) pred: Vec<Vec<usize>>,
}

impl FlowGraph {
    /// `None` if there are too many edges.
    pub(crate) fn new<R: Index>(function: &PtxFunction<R>) -> Option<FlowGraph> {
        let len = function.code.len();
        let mut leader = vec![false; len + 1];
        leader[0] = true;
        for (i, inst) in function.code.iter().enumerate() {
            if ends_block(&inst.op) {
                leader[i + 1] = true;
            }
            if let PtxOp::Branch(target) = inst.op {
                leader[target as usize] = true;
            }
        }
        for &target in function.tables.iter().flatten() {
            leader[target as usize] = true;
        }
        let mut block_of = vec![0usize; len];
        let mut starts = Vec::new();
        for i in 0..len {
            if leader[i] {
                starts.push(i);
            }
            block_of[i] = starts.len() - 1;
        }
        let exit = starts.len();
        let ends: Vec<usize> = (0..exit).map(|b| starts.get(b + 1).map_or(len, |&s| s) - 1).collect();
        let mut succ: Vec<Vec<usize>> = Vec::with_capacity(exit);
        let mut pred: Vec<Vec<usize>> = vec![Vec::new(); exit + 1];
        let mut out = Vec::new();
        let mut edges = 0;
        for (b, &end) in ends.iter().enumerate() {
            successors(function, end, &mut out);
            edges += out.len();
            if edges > MAX_EDGES {
                return None;
            }
            let mut to: Vec<usize> = out.iter().map(|s| s.map_or(exit, |i| block_of[i])).collect();
            to.sort_unstable();
            to.dedup();
            for &s in &to {
                pred[s].push(b);
            }
            succ.push(to);
        }
        Some(FlowGraph { starts, ends, succ, pred })
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }
}

/// Fills in `meet` of every branch; `false` if that would take too long.
pub(crate) fn find_meeting_points<R: Index>(function: &mut PtxFunction<R>, graph: &FlowGraph) -> bool {
    let FlowGraph { starts, ends, succ, pred } = graph;
    let (blocks, exit) = (graph.len(), graph.len());
    // Depth-first postorder of the reversed graph from the exit.
    let mut order = vec![usize::MAX; blocks + 1];
    let mut postorder = Vec::new();
    let mut visited = vec![false; blocks + 1];
    let mut stack = vec![(exit, 0usize)];
    visited[exit] = true;
    while let Some((node, child)) = stack.pop() {
        if let Some(&p) = pred[node].get(child) {
            stack.push((node, child + 1));
            if !visited[p] {
                visited[p] = true;
                stack.push((p, 0));
            }
        } else {
            order[node] = postorder.len();
            postorder.push(node);
        }
    }
    let mut idom = vec![usize::MAX; blocks + 1];
    idom[exit] = exit;
    let mut changed = true;
    let mut steps = 0u64;
    while changed {
        changed = false;
        for &node in postorder.iter().rev().skip(1) {
            let mut new = usize::MAX;
            for &s in &succ[node] {
                if idom[s] == usize::MAX {
                    continue;
                }
                new = if new == usize::MAX { s } else { intersect(&idom, &order, s, new, &mut steps) };
            }
            if steps > MAX_STEPS {
                return false;
            }
            if new != usize::MAX && idom[node] != new {
                idom[node] = new;
                changed = true;
            }
        }
    }
    for b in 0..blocks {
        let meet = match idom[b] {
            usize::MAX => NEVER,
            node if node == exit => NEVER,
            node => starts[node] as u32,
        };
        function.code[ends[b]].meet = meet;
    }
    true
}

fn intersect(idom: &[usize], order: &[usize], mut a: usize, mut b: usize, steps: &mut u64) -> usize {
    while a != b {
        while order[a] < order[b] {
            a = idom[a];
            *steps += 1;
        }
        while order[b] < order[a] {
            b = idom[b];
            *steps += 1;
        }
    }
    a
}
