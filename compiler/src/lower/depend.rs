//! The dependence graph: an edge from each operation to those that must come after it.

use crate::location::LocationTable;
use crate::program::{OpId, Program};
use petgraph::graph::{DiGraph, NodeIndex};

/// Why one operation comes after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dependence {
    /// It reads what the first stored.
    ReadAfterWrite,
    /// It overwrites what the first read.
    WriteAfterRead,
    /// It overwrites what the first stored.
    WriteAfterWrite,
}

/// Nodes are operations, in program order: node index = operation index. Every edge goes forward.
pub(super) type Graph = DiGraph<OpId, Dependence, u32>;

#[derive(Clone, Default)]
struct History {
    writer: Option<u32>,
    readers: Vec<u32>,
}

/// Builds the graph in one walk over the program; edges between the nearest conflicting accesses of each location.
/// Linear in the number of chunk accesses.
pub(super) fn depend(program: &Program) -> Graph {
    let mut graph = Graph::with_capacity(program.ops.len(), 2 * program.ops.len());
    let mut table = LocationTable::new(&program.shape, History::default());
    for (i, op) in (0u32..).zip(&program.ops) {
        graph.add_node(OpId(i));
        let mut edge = |from: u32, why| {
            if from != i {
                graph.update_edge(NodeIndex::new(from as usize), NodeIndex::new(i as usize), why);
            }
        };
        for at in op.sources.iter().flat_map(|s| s.locations()) {
            if let Some(history) = table.get_mut(at) {
                if let Some(writer) = history.writer {
                    edge(writer, Dependence::ReadAfterWrite);
                }
                history.readers.push(i);
            }
        }
        for at in op.dests.iter().flat_map(|s| s.locations()) {
            if let Some(history) = table.get_mut(at) {
                if let (Some(writer), true) = (history.writer, history.readers.is_empty()) {
                    edge(writer, Dependence::WriteAfterWrite);
                }
                for reader in history.readers.drain(..) {
                    edge(reader, Dependence::WriteAfterRead);
                }
                history.writer = Some(i);
            }
        }
    }
    graph
}
