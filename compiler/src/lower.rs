//! Program -> Schedule. Passes, in order, one a file:
//!
//! 1. `depend`: the dependence graph of the operations (read after write, write after read, write after write);
//! 2. `assign`: depth and thread block of each operation on its executing rank;
//! 3. `synchronize`: which blocks have to wait for which operations, for which ranks' start, and who exits after
//!    what, without the waits that others imply;
//! 4. `arrange`: the steps of each block, with counters, values and block-wide barriers.
//!
//! Nothing here is trusted: stage 2 proves the result.

mod arrange;
mod assign;
mod depend;
mod supported;
mod synchronize;

use crate::diagnostic::{Check, Diagnostic};
use crate::domain::Domain;
use crate::options::ScheduleOptions;
use crate::program::Program;
use crate::schedule::Schedule;

/// Lowers a program that stage 1 accepted. Copies are puts by the source's rank, everything else gets by the
/// destination's, unless `#[on]` names the rank.
///
/// Errors: `unsupported` where the world cannot carry put and get, or an option cannot be carried out.
pub fn lower(
    program: &Program,
    domain: &Domain,
    options: &ScheduleOptions,
) -> Result<Schedule, Vec<Diagnostic>> {
    let findings = supported::supported(program, domain, options);
    if !findings.is_empty() {
        return Err(findings);
    }
    if !domain.symmetric && program.shape.ranks > 1 {
        return Err(vec![
            Diagnostic::new(
                Check::Unsupported,
                program.name_loc,
                format!("`{}` needs buffers that every rank can reach", program.name),
            )
            .note("put and get address a peer's buffer, and this world maps none"),
        ]);
    }
    let graph = depend::depend(program);
    let placement = assign::assign(program, &graph, supported::cap(domain, options))?;
    let sync = synchronize::synchronize(program, &graph, &placement);
    Ok(arrange::arrange(program, &placement, &sync, domain.block_cap))
}
