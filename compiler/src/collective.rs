//! A collective: a name, the world sizes it is written for, and its program for any world size.

use crate::diagnostic::{Check, Diagnostic, Diagnostics, Loc, SourceFile};
use crate::domain::{Domain, LARGEST_WORLD};
use crate::dtype::{DType, RedOp};
use crate::emit::{self, Cuda};
use crate::kernel::{self, Kernel};
use crate::kind::Kind;
use crate::lower;
use crate::program::Program;
use crate::schedule::Schedule;
use crate::verify::{self, Verified};
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
    /// The world sizes listed in the attribute, ascending; never empty for a collective that was parsed.
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
        self.evaluated(ranks).map_err(|list| self.wrong(list))
    }

    fn evaluated(&self, ranks: u32) -> Result<Program, Vec<Diagnostic>> {
        if !(1..=LARGEST_WORLD).contains(&ranks) || (self.only && !self.ranks.contains(&ranks)) {
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
        if !(1..=LARGEST_WORLD).contains(&ranks) {
            finding.note(format!("a world has 1 to {LARGEST_WORLD} ranks"))
        } else {
            finding.note(format!("it is written for world sizes {} `only`", sizes.join(", ")))
        }
    }

    /// Lowers the program for a world and proves the schedule by stage 2.
    pub fn verified(&self, domain: &Domain) -> Result<Verified<Schedule>, Diagnostics> {
        self.prove(domain).map(|(_, schedule)| schedule)
    }

    /// The kernel of a world, element type and operator, proved to be the verified schedule.
    pub fn kernel(&self, domain: &Domain, dtype: DType, op: RedOp) -> Result<Verified<Kernel>, Diagnostics> {
        let (program, schedule) = self.prove(domain)?;
        let kernel = kernel::build(&schedule, &program, dtype, op);
        verify::kernel(kernel, &schedule).map_err(|list| self.wrong(list))
    }

    /// The CUDA text of that kernel.
    pub fn cuda(&self, domain: &Domain, dtype: DType, op: RedOp) -> Result<Cuda, Diagnostics> {
        Ok(emit::cuda(&self.kernel(domain, dtype, op)?))
    }

    fn prove(&self, domain: &Domain) -> Result<(Program, Verified<Schedule>), Diagnostics> {
        let program = self.program(domain.ranks)?;
        let schedule = lower::lower(&program, domain)
            .and_then(|schedule| verify::schedule(schedule, &program, domain))
            .map_err(|list| self.wrong(list))?;
        Ok((program, schedule))
    }

    fn wrong(&self, list: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics { list, source: Some(self.source.clone()) }
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
        Err(self.wrong(list))
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
