//! A collective: a name, the world sizes it is written for, and its program for any world size.

use crate::diagnostic::{Check, Diagnostic, Diagnostics, Loc, SourceFile};
use crate::kind::Kind;
use crate::program::Program;
use crate::verify;
use std::fmt;
use std::sync::Arc;

/// What yields the program: the evaluator over source text.
pub trait Evaluate: Send + Sync {
    /// Runs the collective for `ranks` ranks (at least 1). All findings of the evaluation at once.
    fn program(&self, ranks: u32) -> Result<Program, Vec<Diagnostic>>;
}

/// A collective, as `#[collective]` leaves it behind or as the command line reads it.
#[derive(Clone)]
pub struct Collective {
    /// The fn's name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// One buffer named `data` instead of `input` and `output`.
    pub in_place: bool,
    /// The world sizes listed in the attribute, ascending; empty if none are.
    pub ranks: Vec<u32>,
    /// Whether other world sizes are refused.
    pub only: bool,
    /// The text that locations point into.
    pub source: SourceFile,
    /// Where the fn's name stands.
    pub name_loc: Loc,
    /// What yields the program.
    pub evaluate: Arc<dyn Evaluate>,
}

impl Collective {
    /// The program for `ranks` ranks, checked by stage 1.
    pub fn program(&self, ranks: u32) -> Result<Program, Diagnostics> {
        self.evaluated(ranks).map_err(|list| Diagnostics { list, source: Some(self.source.clone()) })
    }

    fn evaluated(&self, ranks: u32) -> Result<Program, Vec<Diagnostic>> {
        if ranks == 0 || (self.only && !self.ranks.contains(&ranks)) {
            return Err(vec![self.wrong_size(ranks)]);
        }
        let program = self.evaluate.program(ranks)?;
        verify::program(&program)?;
        Ok(program)
    }

    fn wrong_size(&self, ranks: u32) -> Diagnostic {
        let sizes: Vec<_> = self.ranks.iter().map(u32::to_string).collect();
        let finding = Diagnostic::new(
            Check::Requirement,
            self.name_loc,
            format!("`{}` does not run on {ranks} ranks", self.name),
        );
        if ranks == 0 {
            finding.note("a world has at least one rank")
        } else {
            finding.note(format!("it is written for world sizes {} `only`", sizes.join(", ")))
        }
    }

    /// Stage 1 for every size of `sizes`: one finding a check and statement, shown for the largest failing size with
    /// the others named.
    pub fn check(&self, sizes: &[u32]) -> Result<(), Diagnostics> {
        let failures: Vec<_> =
            sizes.iter().filter_map(|&ranks| self.evaluated(ranks).err().map(|list| (ranks, list))).collect();
        let list = verify::merge_sizes(failures);
        if list.is_empty() {
            return Ok(());
        }
        Err(Diagnostics { list, source: Some(self.source.clone()) })
    }
}

impl fmt::Debug for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collective")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("in_place", &self.in_place)
            .field("ranks", &self.ranks)
            .field("only", &self.only)
            .finish_non_exhaustive()
    }
}
