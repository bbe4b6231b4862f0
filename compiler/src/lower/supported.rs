//! Schedule options that cannot be carried out.

use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::domain::Domain;
use crate::options::{How, Protocol, ScheduleOptions, Transport};
use crate::program::Program;

/// Every option that asks for something this world or this version does not have.
pub(super) fn supported(program: &Program, domain: &Domain, options: &ScheduleOptions) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut refuse = |loc: Loc, what: String| {
        findings.push(Diagnostic::new(Check::Unsupported, loc, format!("{what} cannot be carried out yet")));
    };
    how(&options.how, &mut refuse);
    for statement in &program.statements {
        how(&statement.how, &mut refuse);
    }
    let more_than_one = options.instances.filter(|given| given.value > 1);
    let numbers = [
        (more_than_one.map(|given| (given.loc, u64::from(given.value))), "instances"),
        (options.slots.map(|given| (given.loc, u64::from(given.value))), "slots"),
        (options.tile.map(|given| (given.loc, given.value)), "tile"),
        (options.unroll.map(|given| (given.loc, u64::from(given.value))), "unroll"),
    ];
    for (given, name) in numbers {
        if let Some((loc, value)) = given {
            refuse(loc, format!("`{name} = {value}`"));
        }
    }
    let cap = cap(domain, options);
    if let Some(given) = options.blocks.filter(|given| given.value > domain.block_cap) {
        let message = format!("{} thread blocks a rank are more than this world has room for", given.value);
        findings.push(
            Diagnostic::new(Check::Unsupported, given.loc, message)
                .note(format!("{} can be resident at once", domain.block_cap)),
        );
    }
    let beyond = program.ops.iter().find(|op| op.site.block.is_some_and(|block| block.0 >= cap));
    if let Some(op) = beyond {
        let loc = program.statements[op.statement.0 as usize].loc;
        let block = op.site.block.map_or(0, |block| block.0);
        findings.push(
            Diagnostic::new(Check::Unsupported, loc, format!("there is no thread block {block}"))
                .note(format!("a rank has at most {cap} blocks, 0 to {}", cap - 1))
                .help("raise `blocks` in `#[schedule(..)]`, or name a smaller block"),
        );
    }
    findings
}

/// Most thread blocks of a rank.
pub(super) fn cap(domain: &Domain, options: &ScheduleOptions) -> u32 {
    options.blocks.map_or(domain.block_cap, |given| given.value.min(domain.block_cap)).max(1)
}

fn how(how: &How, refuse: &mut impl FnMut(Loc, String)) {
    if let Some(given) = how.protocol.filter(|given| given.value != Protocol::Simple) {
        refuse(given.loc, format!("protocol {}", given.value));
    }
    if let Some(given) = how.transport.filter(|given| !matches!(given.value, Transport::Put | Transport::Get))
    {
        refuse(given.loc, format!("transport {}", given.value));
    }
}
