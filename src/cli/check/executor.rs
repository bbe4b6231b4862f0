//! The verdict on a plan of another system: as its own executor runs it first, as Quadrille does second.

use quadrille_compiler::diagnostic::{Check, Diagnostic};
use quadrille_compiler::interop::ExecutorVerdict;
use serde_json::{Value, json};

/// Both verdicts on a plan.
pub(super) struct OwnVerdict {
    own: ExecutorVerdict,
    /// Findings of Quadrille's proof that are so in every executor.
    common: usize,
    /// Reasons for which Quadrille does not execute the plan, whatever its own executor does.
    refused: usize,
}

impl OwnVerdict {
    /// Joins what is found on a plan's executor with what Quadrille's proof finds.
    pub(super) fn new<'a>(own: ExecutorVerdict, proof: impl Iterator<Item = &'a Diagnostic>) -> OwnVerdict {
        let refuses = |found: &&Diagnostic| matches!(found.check, Check::Unsupported | Check::Residency);
        let (refused, common): (Vec<_>, Vec<_>) = proof.partition(refuses);
        OwnVerdict { own, common: common.len(), refused: refused.len() }
    }

    fn own_verdict(&self) -> &'static str {
        match (self.own.findings.len() + self.common, self.refused) {
            (0, 0) => "right",
            (0, _) => "unknown",
            _ => "wrong",
        }
    }

    fn quadrille_verdict(&self) -> &'static str {
        match (self.common, self.refused) {
            (0, 0) => "right",
            (0, _) => "not carried out",
            _ => "wrong",
        }
    }

    /// The lines of the report.
    pub(super) fn text(&self) -> String {
        let mut text = format!("executed by {}: {}", self.own.executor, self.own_verdict());
        for remark in &self.own.remarks {
            text += &format!("\n  {remark}");
        }
        text + &format!("\nexecuted by Quadrille: {}", self.quadrille_verdict())
    }

    /// The field of the JSON.
    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.own.executor,
            "verdict": self.own_verdict(),
            "quadrille": self.quadrille_verdict(),
            "remarks": self.own.remarks,
        })
    }

    /// The findings on the plan's own executor.
    pub(super) fn findings(self) -> Vec<Diagnostic> {
        self.own.findings
    }
}
