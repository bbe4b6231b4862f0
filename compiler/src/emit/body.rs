//! The part of the text that is particular to a kernel: constants, tables, one `__global__`, a branch a class.

use super::code::CodeWriter;
use super::device;
use super::doubt::Doubt;
use super::movement::Movement;
use super::tables::{Tables, constant, dispatch};
use super::terms::{CName, LinkThread, c_protocol, scalings};
use super::{EmittedLine, StepsAt, entry};
use crate::kernel::{
    BlockClass, ClassLinks, Kernel, KernelAction, KernelLoop, KernelOperand, KernelStep, LinkEnd, LinkRun,
    StepOrigin,
};
use crate::program::Scaling;
use crate::program::dtype::RedOp;
use crate::program::ids::BlockId;
use crate::schedule::CounterKind;
use std::fmt::Display;

/// Writes the text that is particular to the kernel, and returns the lines of its steps.
pub(super) fn body(kernel: &Kernel, code: &mut CodeWriter) -> Vec<EmittedLine> {
    let mut tables = Tables::new(kernel);
    // The branches first: they say which tables there are.
    let branches: Vec<Branch> = (0..)
        .zip(&kernel.classes)
        .map(|(number, class)| Branch::of(ClassContext { kernel, class, number }, &mut tables))
        .collect();
    head(code, kernel);
    let (classes, members) = dispatch(kernel);
    let one_class = classes.iter().all(|&c| c == 0);
    if !one_class {
        constant(code, "CLASS", &classes);
    }
    if tables.used() {
        constant(code, "MEMBERS", &members);
        tables.define(code);
    }
    writeln!(code, "\n}}  // namespace\n");
    writeln!(code, "extern \"C\" __global__ void __launch_bounds__({}, 1)", kernel.threads);
    let function =
        format!("{}(const __grid_constant__ quadrille::Params<{}> p)", entry(kernel), kernel.shape.ranks);
    let mut lines = Vec::new();
    code.block(&function, |code| {
        prologue(code, kernel);
        if tables.used() {
            writeln!(code, "const u32 MEMBER = MEMBERS[RANK * GRID + BLOCK];");
        }
        if one_class {
            branches
                .iter()
                .zip(&kernel.classes)
                .for_each(|(branch, class)| branch.write(code, class, &mut lines));
            return;
        }
        code.block("switch (CLASS[RANK * GRID + BLOCK])", |code| {
            for (i, (branch, class)) in branches.iter().zip(&kernel.classes).enumerate() {
                code.block(&format!("case {i}:"), |code| {
                    branch.write(code, class, &mut lines);
                    writeln!(code, "break;");
                });
            }
        });
    });
    lines
}

/// Writes what all blocks begin with.
fn prologue(code: &mut CodeWriter, kernel: &Kernel) {
    writeln!(code, "using namespace {};", CName(&kernel.name));
    let most_links = kernel.classes.iter().map(BlockClass::link_count).max().unwrap_or(0).max(1);
    writeln!(code, "__shared__ Link links[{most_links}];");
    let who = match (kernel.one_launch, kernel.instances) {
        (false, _) => device::ALONE.call([], [&"p"]),
        (true, 1) => device::AMONG.call([&"GRID"], [&"p"]),
        (true, _) => device::AMONG.call([&"GRID * INSTANCES"], [&"p"]),
    };
    writeln!(code, "[[maybe_unused]] const Self self = {who};");
    let block = match kernel.instances {
        1 => "self.block",
        _ => "self.block % GRID, INSTANCE = self.block / GRID",
    };
    writeln!(code, "[[maybe_unused]] const u32 RANK = self.rank, BLOCK = {block};");
    let (parameters, instance) = match (kernel.tile, kernel.instances) {
        (_, 2..) => (", TILE_BYTES, INSTANCES", ", INSTANCE"),
        (Some(_), _) => (", TILE_BYTES", ""),
        (None, _) => ("", ""),
    };
    writeln!(code, "const Chunks<T, CHUNKS, EQUAL{parameters}> chunks(p.count{instance});");
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

/// Writes the constants and operators.
fn head(code: &mut CodeWriter, kernel: &Kernel) {
    let shape = &kernel.shape;
    let op = match kernel.op {
        RedOp::Sum | RedOp::Avg | RedOp::PremulSum(_) => "Sum",
        RedOp::Prod => "Prod",
        RedOp::Min => "Min",
        RedOp::Max => "Max",
    };
    writeln!(code, "// {}: {shape}; {} {}", kernel.name, kernel.dtype, kernel.op);
    writeln!(code, "namespace {} {{\n\nusing namespace quadrille;\n", CName(&kernel.name));
    writeln!(code, "using T = {};\nusing Op = {op};", kernel.dtype.name().to_uppercase());
    writeln!(code, "constexpr u32 RANKS = {};", shape.ranks);
    writeln!(code, "constexpr u32 CHUNKS = {};  // of a unit", shape.chunks);
    writeln!(code, "constexpr bool EQUAL = {};", kernel.divisible);
    writeln!(code, "[[maybe_unused]] constexpr u32 GRID = {};", kernel.blocks());
    writeln!(code, "constexpr u32 THREADS = {};", kernel.threads);
    writeln!(code, "using C = Counters<RANKS, {}>;", kernel.block_cap);
    if let Some(tile) = kernel.tile {
        writeln!(code, "constexpr u64 TILE_BYTES = {tile};");
    }
    if kernel.instances > 1 {
        writeln!(code, "constexpr u32 INSTANCES = {};", kernel.instances);
    }
    for (number, scaling) in scalings(kernel).into_iter().enumerate() {
        scaled_operator(code, number, scaling);
    }
}

/// Writes the operator of the steps that scale so.
fn scaled_operator(code: &mut CodeWriter, number: usize, scaling: &Scaling) {
    writeln!(code, "struct Scaled{number} : Op {{\n  static constexpr bool SCALES = true;");
    if scaling.completes {
        writeln!(code, "  static constexpr u32 DIVISOR = RANKS;");
    }
    if !scaling.bare.is_empty() {
        let which: Vec<String> = scaling.bare.iter().map(|source| format!("source == {source}")).collect();
        let which = which.join(" || ");
        writeln!(code, "  static __device__ constexpr bool bare(u32 source) {{ return {which}; }}");
    }
    writeln!(code, "}};");
}

/// A class, and the kernel it is of.
#[derive(Clone, Copy)]
struct ClassContext<'a> {
    kernel: &'a Kernel,
    class: &'a BlockClass,
    /// The class's index.
    number: u32,
}

/// The code of a class.
#[derive(Default)]
struct Branch {
    code: CodeWriter,
    /// The lines of steps and of what stands around them, counted from the code's first line.
    lines: Vec<EmittedLine>,
}

impl Branch {
    fn of(at: ClassContext<'_>, tables: &mut Tables) -> Branch {
        let ClassContext { kernel, class, .. } = at;
        let mut branch = Branch::default();
        if !class.links.is_empty() {
            branch.open_links(at, tables);
        }
        if Doubt::possible(class) {
            writeln!(branch.around(), "bool failed = false;");
        }
        let tiles = device::TILES.call([], []).to_string();
        if kernel.tile.is_some() {
            branch.around().begin(&format!("for (u64 TILE = 0; TILE < {tiles}; ++TILE)"));
        }
        let doubts = Doubt::of(kernel, class);
        branch.steps(at, &doubts, tables);
        if kernel.tile.is_some() {
            branch.around().end();
        }
        if doubts.last().is_some_and(|end| end.pending) {
            writeln!(branch.around(), "if (failed) return;");
        }
        if !class.links.is_empty() {
            let close = device::CLOSE.call([], [&"links", &class.link_count()]);
            writeln!(branch.around(), "{};", close.and(kernel.tile.map(|_| tiles.as_str())));
        }
        branch
    }

    /// Opens the class's links. No barrier: a link is of one thread alone, which opens, uses and closes it. But all threads
    /// look where a FIFO is.
    fn open_links(&mut self, at: ClassContext<'_>, tables: &mut Tables) {
        let code = self.around();
        at.class.links.iter().for_each(|links| open(code, at.kernel, links, tables));
        if at.class.links.iter().any(|links| links.fifo.is_some()) && !meets_first(at.class) {
            writeln!(code, "{};", device::BLOCK_SYNC.call([], []));
        }
    }

    /// Writes the steps, and the loops around them; `doubts` are those before each.
    fn steps(&mut self, at: ClassContext<'_>, doubts: &[Doubt], tables: &mut Tables) {
        let ClassContext { kernel, class, number } = at;
        let (names, mut done) = (names(kernel, class), 0);
        for (index, (step, &doubt)) in class.steps.iter().zip(doubts).enumerate() {
            let within = class.loop_at(index as u32);
            if let Some(KernelLoop { times, .. }) = within.filter(|within| within.first as usize == index) {
                let code = self.around();
                writeln!(code, "#pragma unroll 1");
                code.begin(&format!("for (int I = 0; I < {times}; ++I)"));
            }
            let steps = match within {
                Some(within) => {
                    StepsAt { class: number, first: done, stride: within.count, times: within.times }
                }
                None => StepsAt { class: number, first: done, stride: 1, times: 1 },
            };
            let last = steps.times == 1 && done as usize + 1 == names.len();
            self.mark(steps.what(&names), Some(steps));
            EmittedStep { kernel, class, number: steps.expression(), last, doubt }.write(
                &mut self.code,
                step,
                tables,
            );
            done += 1;
            if let Some(within) = within.filter(|within| (within.first + within.count) as usize == index + 1)
            {
                self.around().end();
                done += within.count * (within.times - 1);
            }
        }
    }

    /// Says that a step begins, or with `None`, code around steps.
    fn mark(&mut self, what: String, steps: Option<StepsAt>) {
        self.lines.push(EmittedLine { line: self.code.lines(), what, steps });
    }

    /// Returns the writer for code around steps.
    fn around(&mut self) -> &mut CodeWriter {
        self.mark(String::new(), None);
        &mut self.code
    }

    /// Writes the branch of a class to the whole text, and adds its lines.
    fn write(&self, code: &mut CodeWriter, class: &BlockClass, lines: &mut Vec<EmittedLine>) {
        writeln!(code, "// {}", blocks_of(class));
        // Lines are counted from 1.
        let first = code.lines() + 1;
        lines.extend(self.lines.iter().map(|line| EmittedLine { line: first + line.line, ..line.clone() }));
        write!(code, "{}", self.code.text());
        lines.push(EmittedLine { line: code.lines() + 1, what: String::new(), steps: None });
    }
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

/// Writes the loop that opens links.
fn open(code: &mut CodeWriter, kernel: &Kernel, links: &ClassLinks, tables: &mut Tables) {
    let rank = tables.expression(&links.rank);
    let other = tables.expression(links.fifo.as_ref().unwrap_or(&links.block));
    // Each instance has blocks and FIFOs of its own.
    let other = match (kernel.instances, &links.fifo) {
        (1, _) => other,
        (_, Some(_)) => format!("({other}) * INSTANCES + INSTANCE"),
        (_, None) => format!("{other} + INSTANCE * GRID"),
    };
    let link = format!("links[{} + I]", links.first);
    let arguments: [&dyn Display; 6] = [&link, &"p", &"self", &rank, &other, &links.advance];
    let call = match (links.kind, links.end) {
        (CounterKind::Start, LinkEnd::Writer) => device::OPEN_START_TO.call([&"C"], arguments),
        (CounterKind::Start, LinkEnd::Waiter) => device::OPEN_START_FROM.call([&"C"], arguments),
        (CounterKind::Data, LinkEnd::Writer) => device::OPEN_DATA_TO.call([&"C"], arguments),
        (CounterKind::Data, LinkEnd::Waiter) => device::OPEN_DATA_FROM.call([&"C"], arguments),
        (CounterKind::Message, LinkEnd::Writer) => device::OPEN_MESSAGE_TO.call([&"C"], arguments),
        (CounterKind::Message, LinkEnd::Waiter) => device::OPEN_MESSAGE_FROM.call([&"C"], arguments),
        (CounterKind::Credit(protocol), LinkEnd::Writer) => {
            device::OPEN_CREDIT_TO.call([&"C", &c_protocol(protocol), &"RANKS"], arguments)
        }
        (CounterKind::Credit(protocol), LinkEnd::Waiter) => {
            device::OPEN_CREDIT_FROM.call([&"C", &c_protocol(protocol), &"RANKS"], arguments)
        }
    };
    let index = device::INDEX_FROM.call([], [&(links.first % kernel.threads)]);
    writeln!(code, "for (u32 I = {index}; I < {}; I += THREADS)\n  {call};", links.count);
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

/// A step's surroundings.
struct EmittedStep<'a> {
    kernel: &'a Kernel,
    class: &'a BlockClass,
    /// The step's number in the schedule, as a C expression.
    number: String,
    /// True if nothing follows.
    last: bool,
    doubt: Doubt,
}

impl EmittedStep<'_> {
    /// Writes the code of the step.
    fn write(&self, code: &mut CodeWriter, step: &KernelStep, tables: &mut Tables) {
        match &step.action {
            KernelAction::Wait(runs) => self.wait(code, runs),
            KernelAction::Signal(runs) if runs.is_empty() => {}
            KernelAction::Signal(runs) => {
                self.doubt.unless_failed(code, |code| runs.iter().for_each(|run| self.signal(code, run)));
            }
            KernelAction::BlockSync if self.doubt.pending => {
                writeln!(code, "if ({}) return;", device::LEAVE.call([], [&"failed"]));
            }
            KernelAction::BlockSync => writeln!(code, "{};", device::BLOCK_SYNC.call([], [])),
            KernelAction::Move { sources, dests, size_of, scaling } => {
                writeln!(code, "// {}", comment(self.kernel, self.class, step));
                let (kernel, step, doubt) = (self.kernel, self.number.as_str(), self.doubt);
                Movement { kernel, step, doubt, sources, dests, size_of, scaling }.write(code, tables);
            }
        }
    }

    fn signal(&self, code: &mut CodeWriter, run: &LinkRun) {
        let LinkRun { first, count, value } = run;
        let thread = self.thread(run);
        match self.class.kind(first.start) {
            CounterKind::Start => {
                let call = device::SIGNAL_START.call([], [&"p", &"links", first, count, &thread]);
                writeln!(code, "{}{call};", self.once());
            }
            _ => {
                let call = device::SIGNAL_DATA.call([], [&"links", first, count, value, &thread]);
                writeln!(code, "{};", call.and(self.tile()));
            }
        }
    }

    fn wait(&self, code: &mut CodeWriter, runs: &[LinkRun]) {
        let is_start = |run: &LinkRun| self.class.kind(run.first.start) == CounterKind::Start;
        if let [run] = runs
            && !self.doubt.possible
            && (self.once().is_empty() || !is_start(run))
        {
            return self.leave(code, &self.poll(run));
        }
        let poll_all = |code: &mut CodeWriter| {
            for run in runs {
                let once = if is_start(run) { self.once() } else { "" };
                writeln!(code, "{once}failed |= {};", self.poll(run));
            }
            self.leave(code, "failed");
        };
        if self.doubt.possible {
            return poll_all(code);
        }
        code.block("", |code| {
            writeln!(code, "bool failed = false;");
            poll_all(code);
        });
    }

    /// The poll of links, as a C expression that is true if one gives up.
    fn poll(&self, run: &LinkRun) -> String {
        let LinkRun { first, count, value } = run;
        let (step, thread) = (&self.number, self.thread(run));
        match self.class.kind(first.start) {
            CounterKind::Start => device::POLL_START
                .call([], [&"p", &"self", &"links", first, count, step, &thread])
                .to_string(),
            _ => device::POLL_DATA
                .call([], [&"p", &"self", &"links", first, count, value, step, &thread])
                .and(self.tile())
                .to_string(),
        }
    }

    /// Writes that threads leave if `failed`. The kernel ends when all threads have, those that waited, too. Who has given up
    /// does not count what it never saw.
    fn leave(&self, code: &mut CodeWriter, failed: &str) {
        match self.last && self.kernel.tile.is_none() {
            true => writeln!(code, "if ({failed}) return;"),
            false => writeln!(code, "if ({}) return;", device::LEAVE.call([], [&failed])),
        }
    }

    fn thread(&self, run: &LinkRun) -> LinkThread {
        LinkThread { link: run.first, threads: self.kernel.threads }
    }

    /// The condition of what is done once a call.
    fn once(&self) -> &'static str {
        if self.kernel.tile.is_some() { "if (TILE == 0) " } else { "" }
    }

    /// The argument of what is done for each tile.
    fn tile(&self) -> Option<&'static str> {
        self.kernel.tile.map(|_| "TILE")
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
