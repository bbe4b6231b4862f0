//! Schedule options that cannot be carried out.

use super::divide::{multicast, staging};
use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::kernel::THREADS;
use crate::kernel::widths::Widths;
use crate::options::{Given, Protocol, ScheduleOptions, StatementOptions, Transport};
use crate::program::{Op, Program};
use crate::schedule::SLOTS;
use crate::schedule::domain::Domain;

/// Every option that asks for something this world or this version does not have.
pub(super) fn supported(program: &Program, domain: &Domain, options: &ScheduleOptions) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut refuse = |loc: Loc, what: String| {
        findings.push(Diagnostic::new(Check::Unsupported, loc, format!("{what} cannot be carried out yet")));
    };
    unbuilt(&options.how, &mut refuse);
    for statement in &program.statements {
        unbuilt(&statement.how, &mut refuse);
    }
    let room = options.blocks.map_or(domain.block_cap, |given| given.value.min(domain.block_cap));
    if let Some(given) = options.instances.filter(|given| given.value > room) {
        let message = format!("{} instances", given.value);
        findings.push(
            Diagnostic::new(Check::Unsupported, given.loc, message)
                .note(format!("a rank has at most {room} blocks, and every instance needs one of its own")),
        );
    }
    switched(program, options, &mut findings);
    fifos(program, options, domain.symmetric, &mut findings);
    protocols(program, options, domain, &mut findings);
    unrolled(program, options, domain.symmetric, &mut findings);
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

/// Most thread blocks of a rank, for each instance.
pub(super) fn cap(domain: &Domain, options: &ScheduleOptions) -> u32 {
    let instances = options.instances.map_or(1, |given| given.value.max(1));
    let blocks = options.blocks.map_or(domain.block_cap, |given| given.value.min(domain.block_cap));
    (blocks / instances).max(1)
}

fn unbuilt(how: &StatementOptions, refuse: &mut impl FnMut(Loc, String)) {
    let unbuilt = |transport: &Given<Transport>| transport.value == Transport::Bulk;
    if let Some(given) = how.transport.filter(unbuilt) {
        refuse(given.loc, format!("transport {}", given.value));
    }
}

/// Operations that the switch has no part in, of statements that ask for it.
fn switched(program: &Program, options: &ScheduleOptions, findings: &mut Vec<Diagnostic>) {
    let ranks = program.shape.ranks;
    let mut seen = Vec::new();
    for op in &program.ops {
        let statement = &program.statements[op.statement.0 as usize];
        let asked = statement.how.transport.or(options.how.transport);
        let Some(given) = asked.filter(|given| given.value == Transport::Multimem) else { continue };
        let of_all =
            [&op.sources[..], &op.dests[..]].into_iter().any(|side| multicast(side, ranks).is_some());
        if ranks == 1 || of_all || seen.contains(&op.statement) {
            continue;
        }
        seen.push(op.statement);
        findings.push(
            Diagnostic::new(Check::Unsupported, given.loc, "nothing that the switch could do".to_owned())
                .note(format!(
                    "`{}` at {} neither combines nor stores one chunk of every rank",
                    statement.text, statement.loc
                ))
                .help("write `reduce(buffer[..][c])` or `buffer[..][c] = ..`, or leave multimem out here"),
        );
    }
}

/// Slots and tiles that FIFOs have no room for, or that nothing uses.
fn fifos(program: &Program, options: &ScheduleOptions, symmetric: bool, findings: &mut Vec<Diagnostic>) {
    let mut refuse = |loc: Loc, message: String, note: String| {
        findings.push(Diagnostic::new(Check::Unsupported, loc, message).note(note));
    };
    let hows = program.statements.iter().map(|statement| &statement.how).chain([&options.how]);
    let by: Vec<Protocol> = hows.filter_map(|how| staging(how, options, symmetric)).collect();
    let (staged, lines) = (!by.is_empty(), by.iter().any(|protocol| *protocol != Protocol::Simple));
    if let Some(Given { value, loc }) = options.slots {
        if !staged {
            let note =
                "only data that is staged goes through slots: `transport = staged`, or protocol LL or LL128";
            refuse(loc, "`slots` without anything staged".to_owned(), note.to_owned());
        } else if value > SLOTS {
            refuse(loc, format!("{value} slots"), format!("a connection's FIFO has {SLOTS}"));
        }
    }
    if let Some(Given { value, loc }) = options.tile {
        let most = Widths::staged_tile(lines);
        if !value.is_multiple_of(16) {
            refuse(loc, format!("a tile of {value} bytes"), "a tile is a multiple of 16 bytes".to_owned());
        } else if staged && value > most {
            refuse(loc, format!("a tile of {value} bytes"), format!("a slot has room for {most}"));
        }
    }
}

/// Packs of 16 bytes that the threads of a block may have in flight: half of the 65,536 registers of an SM (CUDA C++
/// Programming Guide, technical specifications of compute capabilities 8.0 to 10.0).
const PACKS: u32 = 65_536 / 2 / 4;

/// More packs in flight than there are registers for, or an inner loop that nothing goes through.
fn unrolled(program: &Program, options: &ScheduleOptions, symmetric: bool, findings: &mut Vec<Diagnostic>) {
    let Some(Given { value, loc }) = options.unroll else { return };
    let how = |op: &Op| &program.statements[op.statement.0 as usize].how;
    let in_packs = |op: &&Op| staging(how(op), options, symmetric).is_none_or(|by| by == Protocol::Simple);
    let message = format!("`unroll = {value}`");
    let finding = Diagnostic::new(Check::Unsupported, loc, message);
    let Some(sources) = program.ops.iter().filter(in_packs).map(|op| op.sources.len() as u32).max() else {
        let note = "everything goes through lines with flags, which a thread moves one after the other";
        findings.push(finding.note(note).help("leave it out, or take protocol Simple"));
        return;
    };
    let threads = options.threads.map_or(THREADS, |given| given.value);
    let room = (PACKS / threads.max(32)).min(32);
    let needed = u64::from(value) * u64::from(sources);
    // A single round has to be possible.
    if value > 1 && needed > u64::from(room) {
        findings.push(
            finding
                .note(format!("{value} packs of {sources} sources are {needed} in the registers of a thread"))
                .note(format!("with {threads} threads a block there is room for {room}"))
                .help("lower `unroll` or `threads`"),
        );
    }
}

/// Protocols whose flags lie in the data, asked for where data does not go through slots, or where links tear their lines.
fn protocols(program: &Program, options: &ScheduleOptions, domain: &Domain, findings: &mut Vec<Diagnostic>) {
    let hows = program.statements.iter().map(|statement| &statement.how);
    let mut seen = Vec::new();
    for how in std::iter::once(&options.how).chain(hows) {
        let protocol = how.protocol.or(options.how.protocol).filter(|given| given.value != Protocol::Simple);
        if let Some(torn) =
            protocol.filter(|p| p.value == Protocol::Ll128 && !domain.whole_lines && !seen.contains(&p.loc))
        {
            seen.push(torn.loc);
            let message = match domain.one_device {
                true => "protocol LL128 among ranks that share a GPU",
                false => "protocol LL128 on links that do not keep lines of 128 bytes whole",
            };
            findings.push(
                Diagnostic::new(Check::Unsupported, torn.loc, message.to_owned())
                    .note("a line's flag could come before its data")
                    .help("take protocol LL, or Simple"),
            );
        }
        let direct = how.transport.or(options.how.transport).filter(|given| given.value != Transport::Staged);
        let (Some(protocol), Some(direct)) = (protocol, direct) else { continue };
        if matches!(direct.value, Transport::Multimem | Transport::Bulk) || seen.contains(&protocol.loc) {
            continue;
        }
        seen.push(protocol.loc);
        let message = format!("protocol {} with transport {}", protocol.value, direct.value);
        findings.push(
            Diagnostic::new(Check::Unsupported, protocol.loc, message)
                .note("its lines hold data and flags, and user buffers hold data alone")
                .help("take `transport = staged`, or leave the transport to the compiler"),
        );
    }
}
