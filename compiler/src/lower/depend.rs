//! The dependence graph: an edge from each task to those that must come after it. Messages are edges of their own, see
//! [`Tasks`].

use super::divide::Tasks;
use crate::program::Program;
use crate::program::location::LocationTable;
use petgraph::graph::{DiGraph, NodeIndex};

/// Why one task comes after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dependence {
    /// It reads what the first stored.
    ReadAfterWrite,
    /// It overwrites what the first read.
    WriteAfterRead,
    /// It overwrites what the first stored.
    WriteAfterWrite,
}

/// Nodes are tasks: node index = task number. Every edge goes forward.
pub(super) type TaskGraph = DiGraph<(), Dependence, u32>;

#[derive(Clone, Default)]
struct ChunkAccesses {
    writer: Option<u32>,
    readers: Vec<u32>,
}

/// Builds the graph in one walk over the tasks; edges between the nearest conflicting accesses of each location.
/// Linear in the number of chunk accesses.
pub(super) fn depend(program: &Program, tasks: &Tasks) -> TaskGraph {
    let mut graph = TaskGraph::with_capacity(tasks.list.len(), 2 * tasks.list.len());
    let mut table = LocationTable::new(&program.shape, ChunkAccesses::default());
    for (i, task) in (0u32..).zip(&tasks.list) {
        graph.add_node(());
        let mut edge = |from: u32, why| {
            if from != i {
                graph.update_edge(NodeIndex::new(from as usize), NodeIndex::new(i as usize), why);
            }
        };
        for at in task.reads().flat_map(|s| s.locations()) {
            if let Some(history) = table.get_mut(at) {
                if let Some(writer) = history.writer {
                    edge(writer, Dependence::ReadAfterWrite);
                }
                history.readers.push(i);
            }
        }
        for at in task.stores().flat_map(|s| s.locations()) {
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
