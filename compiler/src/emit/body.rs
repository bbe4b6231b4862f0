//! The part of the text that is particular to a kernel: constants, tables, one `__global__`, a branch a class.

use super::doubt::Doubt;
use super::movement::movement;
use super::tables::{Tables, constant, dispatch};
use super::terms::{braced, c_protocol, indented, scalings, thread_of};
use super::{Line, StepsAt, c_name, entry};
use crate::kernel::{
    BlockClass, ClassLinks, Kernel, KernelAction, KernelLoop, KernelOperand, KernelStep, LinkEnd, LinkRun,
    StepOrigin,
};
use crate::program::Scaling;
use crate::program::dtype::RedOp;
use crate::program::ids::BlockId;
use crate::schedule::CounterKind;

/// The text, whose first line is line `first_line` of the whole, and the lines of its steps.
pub(super) fn body(kernel: &Kernel, first_line: u32) -> (String, Vec<Line>) {
    let mut tables = Tables::new(kernel);
    // The branches first: they say which tables there are.
    let branches: Vec<Vec<Part>> =
        kernel.classes.iter().map(|class| branch(kernel, class, &mut tables)).collect();
    let mut text = head(kernel);
    let (classes, members) = dispatch(kernel);
    let one_class = classes.iter().all(|&c| c == 0);
    if !one_class {
        constant(&mut text, "CLASS", &classes);
    }
    if tables.used() {
        constant(&mut text, "MEMBERS", &members);
        tables.define(&mut text);
    }
    text.push_str(&format!(
        "\n}}  // namespace\n\nextern \"C\" __global__ void __launch_bounds__({}, 1)\n{}(const __grid_constant__ \
         quadrille::Params<{}> p) {{\n  using namespace {};\n",
        kernel.threads,
        entry(kernel),
        kernel.shape.ranks,
        namespace(kernel),
    ));
    let most_links = kernel.classes.iter().map(BlockClass::link_count).max().unwrap_or(0).max(1);
    text.push_str(&format!("  __shared__ Link links[{most_links}];\n"));
    let who = match (kernel.one_launch, kernel.instances) {
        (false, _) => "alone",
        (true, 1) => "among<GRID>",
        (true, _) => "among<GRID * INSTANCES>",
    };
    text.push_str(&format!("  [[maybe_unused]] const Self self = {who}(p);\n"));
    text.push_str(match kernel.instances {
        1 => "  [[maybe_unused]] const u32 RANK = self.rank, BLOCK = self.block;\n",
        _ => "  [[maybe_unused]] const u32 RANK = self.rank, BLOCK = self.block % GRID, INSTANCE = self.block / GRID;\n",
    });
    text.push_str(match (kernel.tile, kernel.instances) {
        (_, 2..) => "  const Chunks<T, CHUNKS, EQUAL, TILE_BYTES, INSTANCES> chunks(p.count, INSTANCE);\n",
        (Some(_), _) => "  const Chunks<T, CHUNKS, EQUAL, TILE_BYTES> chunks(p.count);\n",
        (None, _) => "  const Chunks<T, CHUNKS, EQUAL> chunks(p.count);\n",
    });
    if tables.used() {
        text.push_str("  const u32 MEMBER = MEMBERS[RANK * GRID + BLOCK];\n");
    }
    if !one_class {
        text.push_str("  switch (CLASS[RANK * GRID + BLOCK]) {\n");
    }
    let indent = if one_class { "  " } else { "      " };
    let mut lines = Vec::new();
    for (i, (branch, class)) in branches.iter().zip(&kernel.classes).enumerate() {
        if !one_class {
            text.push_str(&format!("    case {i}: {{\n"));
        }
        text.push_str(&format!("{indent}// {}\n", blocks_of(class)));
        let mut at = first_line + text.lines().count() as u32;
        for Part { steps, what, code } in branch {
            let steps = steps.map(|steps| StepsAt { class: i as u32, ..steps });
            lines.push(Line { line: at, what: what.clone(), steps });
            for line in code.lines() {
                at += 1;
                text.push_str(&format!("{indent}{line}\n"));
            }
        }
        lines.push(Line { line: at, what: String::new(), steps: None });
        text.push_str(if one_class { "" } else { "      break;\n    }\n" });
    }
    text.push_str(if one_class { "}\n" } else { "  }\n}\n" });
    (text, lines)
}

/// The blocks of a class; of many the first and the last.
fn blocks_of(class: &BlockClass) -> String {
    let names = |members: &[BlockId]| members.iter().map(BlockId::to_string).collect::<Vec<_>>().join(" ");
    match class.members.as_slice() {
        [first, second, .., last] if class.members.len() > 8 => {
            format!("{first} {second} .. {last}: {} blocks", class.members.len())
        }
        few => names(few),
    }
}

fn namespace(kernel: &Kernel) -> String {
    c_name(&kernel.name)
}

fn head(kernel: &Kernel) -> String {
    let grid = kernel.blocks();
    let element = kernel.dtype.name().to_uppercase();
    let op = match kernel.op {
        RedOp::Sum | RedOp::Avg | RedOp::PremulSum(_) => "Sum",
        RedOp::Prod => "Prod",
        RedOp::Min => "Min",
        RedOp::Max => "Max",
    };
    format!(
        "// {}: {}; {} {}\nnamespace {} {{\n\nusing namespace quadrille;\n\n\
         using T = {element};\nusing Op = {op};\n\
         constexpr u32 RANKS = {};\nconstexpr u32 CHUNKS = {};  // of a unit\nconstexpr bool EQUAL = {};\n\
         [[maybe_unused]] constexpr u32 GRID = {grid};\nconstexpr u32 THREADS = {};\nusing C = Counters<RANKS, {}>;\n{}{}",
        kernel.name,
        kernel.shape,
        kernel.dtype,
        kernel.op,
        namespace(kernel),
        kernel.shape.ranks,
        kernel.shape.chunks,
        kernel.divisible,
        kernel.threads,
        kernel.block_cap,
        tiles(kernel),
        scaled_operators(kernel),
    )
}

/// The constants of tiles and instances, where there are any.
fn tiles(kernel: &Kernel) -> String {
    let mut text = kernel.tile.map_or(String::new(), |tile| format!("constexpr u64 TILE_BYTES = {tile};\n"));
    if kernel.instances > 1 {
        text.push_str(&format!("constexpr u32 INSTANCES = {};\n", kernel.instances));
    }
    text
}

/// A step's code, or what stands around the steps.
struct Part {
    /// The steps of the schedule; the class is not known yet.
    steps: Option<StepsAt>,
    /// Their description in the program's terms.
    what: String,
    code: String,
}

/// The code of a class.
fn branch(kernel: &Kernel, class: &BlockClass, tables: &mut Tables) -> Vec<Part> {
    let around = |code: String| Part { steps: None, what: String::new(), code };
    let mut parts = Vec::new();
    if !class.links.is_empty() {
        // No barrier: a link is of one thread alone, which opens, uses and closes it. But all threads look where a FIFO is.
        let mut opened: String =
            class.links.iter().map(|links| open(links, (kernel.threads, kernel.instances), tables)).collect();
        if class.links.iter().any(|links| links.fifo.is_some()) && !meets_first(class) {
            opened.push_str("block_sync();\n");
        }
        parts.push(around(opened));
    }
    let doubts = Doubt::of(kernel, class);
    if Doubt::possible(class) {
        parts.push(around("bool failed = false;\n".to_owned()));
    }
    if kernel.tile.is_some() {
        parts.push(around("for (u64 TILE = 0; TILE < chunks.tiles(); ++TILE) {\n".to_owned()));
    }
    let (names, mut done) = (names(kernel, class), 0);
    for (index, (step, doubt)) in class.steps.iter().zip(&doubts).enumerate() {
        let within = class.loop_at(index as u32);
        let begins = within.filter(|within| within.first as usize == index);
        let indent = usize::from(kernel.tile.is_some());
        if let Some(KernelLoop { times, .. }) = begins {
            let head = format!("#pragma unroll 1\nfor (int I = 0; I < {times}; ++I) {{\n");
            parts.push(around(indented(&head, indent)));
        }
        let steps = match within {
            Some(within) => StepsAt { class: 0, first: done, stride: within.count, times: within.times },
            None => StepsAt { class: 0, first: done, stride: 1, times: 1 },
        };
        let at =
            At { number: steps.expression(), last: steps.times == 1 && done as usize + 1 == names.len() };
        let code = code(kernel, class, (&at, step, *doubt), tables);
        let code = indented(&code, indent + usize::from(within.is_some()));
        parts.push(Part { what: steps.what(&names), steps: Some(steps), code });
        done += 1;
        if let Some(within) = within.filter(|within| (within.first + within.count) as usize == index + 1) {
            parts.push(around(indented("}\n", indent)));
            done += within.count * (within.times - 1);
        }
    }
    if kernel.tile.is_some() {
        parts.push(around("}\n".to_owned()));
    }
    if doubts.last().is_some_and(|end| end.pending) {
        parts.push(around("if (failed) return;\n".to_owned()));
    }
    if !class.links.is_empty() {
        let tiles = if kernel.tile.is_some() { ", chunks.tiles()" } else { "" };
        parts.push(around(format!("close(links, {}{tiles});\n", class.link_count())));
    }
    parts
}

/// Returns true if all threads meet before any of them looks up a FIFO of others: at a first wait, or when calls are compared.
fn meets_first(class: &BlockClass) -> bool {
    match class.steps.first().map(|step| &step.action) {
        Some(KernelAction::Wait(_)) => class.steps.len() > 1 || !class.loops.is_empty(),
        Some(KernelAction::Move { sources, dests, .. }) => {
            let first = |operand: &KernelOperand| matches!(operand, KernelOperand::Message { number, .. } if number.is_zero());
            let stores = |operand: &KernelOperand| matches!(operand, KernelOperand::Message { .. });
            sources.iter().any(first) && !dests.iter().any(stores)
        }
        _ => false,
    }
}

fn open(links: &ClassLinks, (threads, instances): (u32, u32), tables: &mut Tables) -> String {
    let way = match links.end {
        LinkEnd::Writer => "to",
        LinkEnd::Waiter => "from",
    };
    let function = match links.kind {
        CounterKind::Start => format!("start_{way}<C>"),
        CounterKind::Data => format!("data_{way}<C>"),
        CounterKind::Message => format!("message_{way}<C>"),
        CounterKind::Credit(protocol) => format!("credit_{way}<C, {}, RANKS>", c_protocol(protocol)),
    };
    let rank = tables.expression(&links.rank);
    let other = tables.expression(links.fifo.as_ref().unwrap_or(&links.block));
    // Each instance has blocks and FIFOs of its own.
    let other = match (instances, &links.fifo) {
        (1, _) => other,
        (_, Some(_)) => format!("({other}) * INSTANCES + INSTANCE"),
        (_, None) => format!("{other} + INSTANCE * GRID"),
    };
    format!(
        "for (u32 I = index_from({}); I < {}; I += THREADS)\n  \
         open_{function}(links[{} + I], p, self, {rank}, {other}, {});\n",
        links.first % threads,
        links.count,
        links.first,
        links.advance
    )
}

/// Describes each step of a class's blocks in the program's terms. A wait is named by the statement of the next move.
pub(super) fn names(kernel: &Kernel, class: &BlockClass) -> Vec<String> {
    let mut ahead: Option<&str> = None;
    let order = class.order().unwrap_or_default();
    let names = order.into_iter().rev().map(|(step, i)| {
        let step = &class.steps[step];
        let statement = step.origin(i).and_then(|origin| origin.statement);
        ahead = statement.map(|id| kernel.statements[id.0 as usize].as_str()).or(ahead);
        match (&step.action, ahead) {
            (KernelAction::Wait(_), Some(statement)) => format!("the wait before {statement}"),
            (KernelAction::Wait(_), None) => "the wait for peers at the end of the call".to_owned(),
            (KernelAction::Signal(_), _) => "a signal".to_owned(),
            (KernelAction::BlockSync, _) => "a block-wide barrier".to_owned(),
            (KernelAction::Move { .. }, statement) => statement.unwrap_or("a move").to_owned(),
        }
    });
    let mut names: Vec<String> = names.collect();
    names.reverse();
    names
}

/// The place of a step.
struct At {
    /// Its number in the schedule, as a C expression.
    number: String,
    /// Nothing follows.
    last: bool,
}

fn code(
    kernel: &Kernel,
    class: &BlockClass,
    (at, step, doubt): (&At, &KernelStep, Doubt),
    tables: &mut Tables,
) -> String {
    match &step.action {
        KernelAction::Wait(runs) => wait(kernel, class, (at, doubt), runs),
        KernelAction::Signal(runs) => {
            let (once, tile) = per_tile(kernel);
            let signals = runs.iter().map(|run| {
                let LinkRun { first, count, value } = run;
                let first_thread = thread_of(*first, kernel.threads);
                match class.kind(first.start) {
                    CounterKind::Start => {
                        format!("{once}signal_start(p, links, {first}, {count}, {first_thread});\n")
                    }
                    _ => format!("signal_data(links, {first}, {count}, {value}, {first_thread}{tile});\n"),
                }
            });
            doubt.unless_failed(&signals.collect::<String>())
        }
        KernelAction::BlockSync => {
            if doubt.pending { "if (leave(failed)) return;\n" } else { "block_sync();\n" }.to_owned()
        }
        KernelAction::Move { .. } => {
            let comment = comment(kernel, class, step);
            format!("// {comment}\n{}", movement(kernel, &at.number, (step, doubt), tables))
        }
    }
}

/// The statement of a move, and for which iterations of the program it is done.
fn comment(kernel: &Kernel, class: &BlockClass, step: &KernelStep) -> String {
    let first = step.origins.first();
    let statement = first.and_then(|origin| origin.statement);
    let statement = statement.map_or("a move", |id| kernel.statements[id.0 as usize].as_str());
    let [first, last] =
        [first, step.origins.last()].map(|origin| origin.map_or("", |origin: &StepOrigin| &origin.iteration));
    let iterations = match (first, last) {
        ("", _) => return statement.to_owned(),
        (first, last) if first == last => first.to_owned(),
        (first, last) => format!("{first} .. {last}"),
    };
    match class.members.as_slice() {
        [_] => format!("{statement}  {iterations}"),
        many => format!("{statement}  on {}: {iterations}", many[0]),
    }
}

/// The operators of the steps that scale.
fn scaled_operators(kernel: &Kernel) -> String {
    let define = |(number, scaling): (usize, &&Scaling)| {
        let mut body = "  static constexpr bool SCALES = true;\n".to_owned();
        if scaling.completes {
            body.push_str("  static constexpr u32 DIVISOR = RANKS;\n");
        }
        if !scaling.bare.is_empty() {
            let which: Vec<String> =
                scaling.bare.iter().map(|source| format!("source == {source}")).collect();
            let which = which.join(" || ");
            body.push_str(&format!(
                "  static __device__ constexpr bool bare(u32 source) {{ return {which}; }}\n"
            ));
        }
        format!("struct Scaled{number} : Op {{\n{body}}};\n")
    };
    scalings(kernel).iter().enumerate().map(define).collect()
}

/// The condition of what is done once a call, and the argument of what is done for a tile.
fn per_tile(kernel: &Kernel) -> (&'static str, &'static str) {
    match kernel.tile {
        Some(_) => ("if (TILE == 0) ", ", TILE"),
        None => ("", ""),
    }
}

fn wait(kernel: &Kernel, class: &BlockClass, (at, doubt): (&At, Doubt), runs: &[LinkRun]) -> String {
    let (once, tile) = per_tile(kernel);
    let step = &at.number;
    let poll = |run: &LinkRun| {
        let LinkRun { first, count, value } = run;
        let first_thread = thread_of(*first, kernel.threads);
        match class.kind(first.start) {
            CounterKind::Start => {
                (once, format!("poll_start(p, self, links, {first}, {count}, {step}, {first_thread})"))
            }
            _ => (
                "",
                format!("poll_data(p, self, links, {first}, {count}, {value}, {step}, {first_thread}{tile})"),
            ),
        }
    };
    // The kernel ends when all threads have, those that waited, too. Who has given up does not count what it never saw.
    let last = at.last && kernel.tile.is_none();
    let leave = |failed: &str| match last {
        true => format!("if ({failed}) return;\n"),
        false => format!("if (leave({failed})) return;\n"),
    };
    match runs {
        [run] if !doubt.possible && poll(run).0.is_empty() => leave(&poll(run).1),
        _ => {
            let polls = runs.iter().map(poll).map(|(once, poll)| format!("{once}failed |= {poll};\n"));
            let code: String = polls.chain([leave("failed")]).collect();
            if doubt.possible { code } else { braced(&format!("bool failed = false;\n{code}")) }
        }
    }
}
