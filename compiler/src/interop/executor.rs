//! The verdict on a plan as its own system executes it.

use crate::diagnostic::Diagnostic;

/// The verdict on a plan as the system that it was written for executes it. What Quadrille's own proof finds comes on top:
/// wrong results, races and deadlocks there are such in every executor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutorVerdict {
    /// The executor's name.
    pub executor: &'static str,
    /// Why it does not execute the plan, or not as its collective demands.
    pub findings: Vec<Diagnostic>,
    /// The things that it passes over, and others that a user should know.
    pub remarks: Vec<String>,
}
