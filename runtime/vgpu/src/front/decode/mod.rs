//! `AstModule` -> decoded functions: names resolved, registers numbered, labels turned into program counters.

mod alu;
mod atomic;
mod bulk;
mod compare;
mod control;
mod convert;
mod fence;
mod float;
mod integer;
mod mbarrier;
mod memory;
mod mov;
mod multimem;
mod names;
mod parameters;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::arithmetic::types::Ty;
use crate::fault::{PtxProblem, PtxProblemKind, SourceLine, Space};
use crate::front::ast::{AstFunction, AstInst, AstModule, AstOperand, AstStatement, AstStatementKind, Var};
use crate::front::cfg::{FlowGraph, find_meeting_points};
use crate::front::operands::operands;
use crate::front::share_registers::{Sharing, compact};
use crate::isa::{
    FRAME_PARAMS, Inst, InstructionClass, NEVER, OperandLists, PredOperand, Preset, PtxFunction, PtxOp,
    RegisterLayout,
};
use crate::registers::{Bank, NO_NAME, Name};

type Result<T> = std::result::Result<T, PtxProblemKind>;

const MAX_INSTRUCTIONS: usize = 1 << 20;
const MAX_PROBLEMS: usize = 50;
const MAX_PARAM_BYTES: u64 = 1 << 15;
/// Shared memory that a block can have.
pub(crate) const MAX_SHARED_BYTES: u64 = 227 * 1024;
const MAX_LOCAL_BYTES: u64 = 512 * 1024;

/// Names of the whole module.
pub(crate) struct Globals<'a> {
    pub(crate) symbols: FxHashMap<&'a str, Symbol>,
    pub(crate) files: FxHashMap<u32, Arc<str>>,
    /// Shared memory of the module's scope and of device functions, common to all entries.
    pub(crate) shared_bytes: u64,
}

/// The meaning of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Symbol {
    Reg(Ty, Name),
    /// A 128-bit register: its lower and its upper half.
    Wide([Name; 2]),
    /// Registers `name0 .. name(count-1)`, numbered when first used.
    Range(Ty, u32),
    Var(u32),
    Shared(u64),
    DynamicShared,
    Local(u64),
    /// Address in the param space.
    Param(u64),
    Function(u32),
    Targets(u32),
}

fn align_up(at: u64, align: u32) -> u64 {
    at.next_multiple_of(u64::from(align.max(1)))
}

/// Decodes all functions of the module; the order is that of the text.
pub(crate) fn decode<'a>(
    ast: &AstModule<'a>,
    sharing: Sharing,
) -> std::result::Result<Vec<PtxFunction>, Vec<PtxProblem>> {
    let mut problems = Vec::new();
    let mut globals = Globals { symbols: FxHashMap::default(), files: FxHashMap::default(), shared_bytes: 0 };
    for &(index, name) in &ast.files {
        globals.files.insert(index, name.into());
    }
    let mut number = 0;
    for var in &ast.vars {
        let symbol = match var.space {
            Space::Shared if var.is_extern || var.bytes == 0 => Symbol::DynamicShared,
            Space::Shared => Symbol::Shared(place_shared(&mut globals.shared_bytes, var, &mut problems)),
            _ => {
                number += 1;
                Symbol::Var(number - 1)
            }
        };
        if globals.symbols.insert(var.name, symbol).is_some() && !var.is_extern {
            problems.push(PtxProblem {
                line: var.line,
                kind: PtxProblemKind::Redeclared { name: var.name.into() },
            });
        }
    }
    // A declaration before the definition is the same function.
    let mut bodies: Vec<&AstFunction<'a>> = Vec::new();
    let mut index: FxHashMap<&str, usize> = FxHashMap::default();
    for function in &ast.functions {
        match index.get(function.name) {
            Some(&i) if bodies[i].body.is_none() => bodies[i] = function,
            Some(_) if function.body.is_none() => {}
            Some(_) => problems.push(PtxProblem {
                line: function.line,
                kind: PtxProblemKind::Redeclared { name: function.name.into() },
            }),
            None => {
                index.insert(function.name, bodies.len());
                globals.symbols.insert(function.name, Symbol::Function(bodies.len() as u32));
                bodies.push(function);
            }
        }
    }
    let mut functions: Vec<Option<PtxFunction>> = vec![None; bodies.len()];
    // Device functions first: their shared variables precede those of every entry.
    for entry in [false, true] {
        for (i, ast) in bodies.iter().enumerate().filter(|(_, f)| f.entry == entry) {
            let decoder = Decoder::new(&mut globals, &bodies, ast);
            functions[i] = decoder.function(sharing, &mut problems);
            if problems.len() >= MAX_PROBLEMS {
                break;
            }
        }
    }
    problems.sort_by_key(|p| p.line);
    if problems.is_empty() { Ok(functions.into_iter().flatten().collect()) } else { Err(problems) }
}

fn place_shared(top: &mut u64, var: &Var<'_>, problems: &mut Vec<PtxProblem>) -> u64 {
    let offset = align_up(*top, var.align);
    *top = offset.saturating_add(var.bytes);
    if *top > MAX_SHARED_BYTES {
        let kind = PtxProblemKind::Limit { what: "bytes of shared memory", limit: MAX_SHARED_BYTES };
        problems.push(PtxProblem { line: var.line, kind });
    }
    offset
}

/// The most lines that a line is reported to be inlined in, one in the other.
const MAX_INLINED: usize = 32;

/// File, line and column; the same of the place where the line is inlined, and that place's number among the lines.
type LocKey = (u32, u32, u32, Option<(u32, u32, u32)>, Option<u32>);

#[derive(Default)]
struct BlockScope<'a> {
    symbols: FxHashMap<&'a str, Symbol>,
    labels: FxHashMap<&'a str, u32>,
    /// Branches whose label is not yet known: instruction and label.
    branches: Vec<(usize, &'a str, u32)>,
    /// Tables of indexed branches whose labels are not yet known.
    tables: Vec<(usize, Vec<&'a str>, u32)>,
    /// Call parameters in use when the scope was opened.
    params: u64,
}

struct Decoder<'m, 'a> {
    globals: &'m mut Globals<'a>,
    functions: &'m [&'m AstFunction<'a>],
    ast: &'m AstFunction<'a>,
    out: PtxFunction<Name>,
    scopes: Vec<BlockScope<'a>>,
    presets: FxHashMap<(Bank, Preset), Name>,
    file_lines: FxHashMap<LocKey, u32>,
    /// The last line with a file, line and column: what is inlined there is inlined where that is.
    last_lines: FxHashMap<(u32, u32, u32), u32>,
    frame_params: u64,
    /// For each parameter of a function whose address is taken, by its own address, the place of its copy in local memory.
    addressed: FxHashMap<u64, u64>,
    shared_top: u64,
    /// The condition code register, once there is one.
    carry: Name,
    // State of the instruction that is being decoded.
    guard: PredOperand<Name>,
    line: u32,
    loc: u32,
    weight: u8,
}

const NO_GUARD: PredOperand<Name> = PredOperand { reg: NO_NAME, negated: false };

impl<'m, 'a> Decoder<'m, 'a> {
    fn new(
        globals: &'m mut Globals<'a>,
        functions: &'m [&'m AstFunction<'a>],
        ast: &'m AstFunction<'a>,
    ) -> Self {
        let out = PtxFunction {
            first: 0,
            name: ast.name.into(),
            entry: ast.entry,
            code: Vec::new(),
            layout: RegisterLayout { b16: 0, b32: 0, b64: 0, pred: 0, presets: Vec::new(), late: Vec::new() },
            operands: OperandLists::default(),
            lines: Vec::new(),
            tables: Vec::new(),
            calls: Vec::new(),
            atoms: Vec::new(),
            multimems: Vec::new(),
            mbarriers: Vec::new(),
            asyncs: Vec::new(),
            params: Vec::new(),
            returns: Vec::new(),
            param_bytes: 0,
            frame_param_bytes: 0,
            local_bytes: 0,
            shared_bytes: 0,
            max_threads: ast.max_threads,
        };
        let shared_top = globals.shared_bytes;
        Decoder {
            globals,
            functions,
            ast,
            out,
            scopes: vec![BlockScope::default()],
            presets: FxHashMap::default(),
            file_lines: FxHashMap::default(),
            last_lines: FxHashMap::default(),
            frame_params: 0,
            addressed: FxHashMap::default(),
            shared_top,
            carry: NO_NAME,
            guard: NO_GUARD,
            line: ast.line,
            loc: NEVER,
            weight: 1,
        }
    }

    fn function(mut self, sharing: Sharing, problems: &mut Vec<PtxProblem>) -> Option<PtxFunction> {
        let ast = self.ast;
        if let Err(kind) = self.parameters() {
            problems.push(PtxProblem { line: ast.line, kind });
        }
        for statement in ast.body.iter().flatten() {
            self.line = statement.line;
            if let Err(kind) = self.statement(statement, problems) {
                problems.push(PtxProblem { line: statement.line, kind });
                if problems.len() >= MAX_PROBLEMS {
                    break;
                }
            }
        }
        self.guard = NO_GUARD;
        self.weight = 0;
        self.push(PtxOp::Ret);
        while self.scopes.len() > 1 {
            self.close(problems);
        }
        self.close(problems);
        self.out.shared_bytes = self.shared_top.min(MAX_SHARED_BYTES) as u32;
        if !ast.entry {
            self.globals.shared_bytes = self.shared_top;
        }
        if !problems.is_empty() {
            return None;
        }
        self.finish(sharing).map_err(|kind| problems.push(PtxProblem { line: ast.line, kind })).ok()
    }

    /// The function as it is executed.
    fn finish(mut self, sharing: Sharing) -> Result<PtxFunction> {
        let everywhere = PtxProblemKind::Limit { what: "branches that go everywhere", limit: 1 << 22 };
        let Some(graph) = FlowGraph::new(&self.out) else { return Err(everywhere) };
        if !find_meeting_points(&mut self.out, &graph) {
            return Err(everywhere);
        }
        self.out.operands = operands(&self.out);
        compact(self.out, &graph, sharing)
    }

    fn scope(&mut self) -> &mut BlockScope<'a> {
        if self.scopes.is_empty() {
            self.scopes.push(BlockScope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    fn declare(&mut self, name: &'a str, symbol: Symbol) -> Result<()> {
        match self.scope().symbols.insert(name, symbol) {
            None => Ok(()),
            Some(_) => Err(PtxProblemKind::Redeclared { name: name.into() }),
        }
    }

    fn statement(&mut self, statement: &'m AstStatement<'a>, problems: &mut Vec<PtxProblem>) -> Result<()> {
        match &statement.kind {
            AstStatementKind::Label(name) => {
                let here = self.out.code.len() as u32;
                if self.scope().labels.insert(name, here).is_some() {
                    return Err(PtxProblemKind::Redeclared { name: (*name).into() });
                }
            }
            AstStatementKind::Reg { ty, name, count: None } => {
                let symbol = self.register(*ty)?;
                self.declare(name, symbol)?;
            }
            AstStatementKind::Reg { ty, name, count: Some(count) } => {
                self.declare(name, Symbol::Range(*ty, *count))?
            }
            AstStatementKind::Var(var) => self.variable(var, problems)?,
            AstStatementKind::Open => {
                let params = self.frame_params;
                self.scopes.push(BlockScope { params, ..BlockScope::default() });
            }
            AstStatementKind::Close => self.close(problems),
            AstStatementKind::Loc { file, at, column, inlined_at } => {
                self.loc = self.source_line(*file, *at, *column, *inlined_at);
            }
            AstStatementKind::Targets { name, labels } => {
                let table = self.out.tables.len();
                self.out.tables.push(Vec::new());
                let line = self.line;
                self.scope().tables.push((table, labels.clone(), line));
                self.declare(name, Symbol::Targets(table as u32))?;
            }
            AstStatementKind::Inst(inst) => self.instruction(inst)?,
        }
        Ok(())
    }

    /// Ends a scope: its labels are known now; branches to others wait for the scope around it.
    fn close(&mut self, problems: &mut Vec<PtxProblem>) {
        let Some(scope) = self.scopes.pop() else { return };
        if !self.scopes.is_empty() {
            self.frame_params = scope.params;
        }
        let undeclared = |name: &str, line| {
            let kind = PtxProblemKind::Undeclared { name: name.into() };
            PtxProblem { line, kind }
        };
        for (at, label, line) in scope.branches {
            match (scope.labels.get(label), self.scopes.last_mut()) {
                (Some(&target), _) => self.out.code[at].op = PtxOp::Branch(target),
                (None, Some(outer)) => outer.branches.push((at, label, line)),
                (None, None) => problems.push(undeclared(label, line)),
            }
        }
        for (table, labels, line) in scope.tables {
            let missing = labels.iter().find(|&&label| !scope.labels.contains_key(label)).copied();
            match (missing, self.scopes.last_mut()) {
                (None, _) => {
                    self.out.tables[table] = labels.iter().map(|&label| scope.labels[label]).collect()
                }
                (Some(_), Some(outer)) => outer.tables.push((table, labels, line)),
                (Some(label), None) => problems.push(undeclared(label, line)),
            }
        }
    }

    fn source_line(&mut self, file: u32, line: u32, column: u32, inlined_at: Option<(u32, u32, u32)>) -> u32 {
        if line == 0 {
            return self.loc;
        }
        let unknown = || Arc::from("?");
        let name = |file: u32| self.globals.files.get(&file).cloned().unwrap_or_else(unknown);
        let lines = &mut self.out.lines;
        let around = inlined_at.and_then(|at| self.last_lines.get(&at).copied());
        let number = *self.file_lines.entry((file, line, column, inlined_at, around)).or_insert_with(|| {
            let inlined_at = inlined_at.map(|(file, line, column)| {
                let outer = around.and_then(|around| lines[around as usize].inlined_at.clone());
                let inlined_at = outer.filter(|outer| outer.depth() < MAX_INLINED);
                Box::new(SourceLine { file: name(file), line, column, inlined_at })
            });
            lines.push(SourceLine { file: name(file), line, column, inlined_at });
            lines.len() as u32 - 1
        });
        self.last_lines.insert((file, line, column), number);
        number
    }

    fn variable(&mut self, var: &'m Var<'a>, problems: &mut Vec<PtxProblem>) -> Result<()> {
        let symbol = match var.space {
            Space::Shared if var.is_extern || var.bytes == 0 => Symbol::DynamicShared,
            Space::Shared => Symbol::Shared(place_shared(&mut self.shared_top, var, problems)),
            Space::Local => {
                let offset = align_up(self.out.local_bytes, var.align);
                self.out.local_bytes = offset + var.bytes;
                let limit = MAX_LOCAL_BYTES;
                if self.out.local_bytes > limit {
                    return Err(PtxProblemKind::Limit { what: "bytes of local memory", limit });
                }
                Symbol::Local(offset)
            }
            Space::Param => {
                let offset = align_up(self.frame_params, var.align);
                self.frame_params = offset + var.bytes;
                let limit = MAX_PARAM_BYTES;
                if self.frame_params > limit {
                    return Err(PtxProblemKind::Limit { what: "bytes of call parameters", limit });
                }
                self.out.frame_param_bytes = self.out.frame_param_bytes.max(self.frame_params as u32);
                Symbol::Param(FRAME_PARAMS + offset)
            }
            _ => {
                return Err(PtxProblemKind::Directive {
                    directive: format!(".{} in a function", var.space).into(),
                });
            }
        };
        self.declare(var.name, symbol)
    }

    fn push(&mut self, op: PtxOp<Name>) {
        let Decoder { guard, line, loc, weight, .. } = *self;
        let class = InstructionClass::of(&op);
        self.out.code.push(Inst { op, guard, meet: NEVER, line, loc, class, weight });
        self.weight = 0;
    }

    /// A step in front of the instruction, which does not count. It has no guard, so that the register has no value of
    /// before.
    fn push_before(&mut self, op: PtxOp<Name>) {
        let (line, loc, class) = (self.line, self.loc, InstructionClass::of(&op));
        self.out.code.push(Inst { op, guard: NO_GUARD, meet: NEVER, line, loc, class, weight: 0 });
    }

    fn instruction(&mut self, inst: &'m AstInst<'a>) -> Result<()> {
        if self.out.code.len() >= MAX_INSTRUCTIONS {
            let limit = MAX_INSTRUCTIONS as u64;
            return Err(PtxProblemKind::Limit { what: "instructions in a function", limit });
        }
        self.weight = 1;
        self.guard = match inst.guard {
            None => NO_GUARD,
            Some((name, negated)) => PredOperand { reg: self.pred_reg(inst, 1, name)?, negated },
        };
        let head = inst.op.split('.').next().unwrap_or_default();
        match head {
            "ld" | "ldu" | "st" => self.load_store(inst),
            "atom" | "red" => self.atomic(inst),
            "multimem" => self.multimem(inst),
            "mbarrier" => self.mbarrier(inst),
            "cp" => self.copy(inst),
            "mapa" | "getctarank" => self.cluster(inst),
            "mov" => self.mov(inst),
            "cvt" => self.cvt(inst),
            "cvta" => self.cvta(inst),
            "isspacep" => self.isspacep(inst),
            "setp" => self.setp(inst),
            "set" => self.set(inst),
            "selp" => self.selp(inst),
            "lop3" => self.lop3(inst),
            "bfi" => self.bfi(inst),
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" => self.control(inst, head),
            "bar" | "barrier" => self.barrier(inst),
            "shfl" | "vote" | "match" | "redux" | "elect" | "activemask" => self.collective(inst, head),
            "testp" => self.testp(inst),
            "membar" | "fence" => self.fence(inst),
            "prefetch" | "prefetchu" | "griddepcontrol" | "discard" | "applypriority" | "pmevent"
            | "setmaxnreg" | "createpolicy" => self.hint(inst),
            "nanosleep" => {
                let time = self.src(inst, 0, Bank::B32)?;
                self.push(PtxOp::Nanosleep(time));
                Ok(())
            }
            _ => self.arithmetic(inst),
        }
    }

    fn unsupported<T>(&self, inst: &AstInst<'_>, reason: &'static str) -> Result<T> {
        Err(PtxProblemKind::Unsupported { instruction: inst.op.into(), reason })
    }

    /// A problem with operand `index`, counted from 0.
    fn bad<T>(&self, inst: &AstInst<'_>, index: usize, reason: &'static str) -> Result<T> {
        Err(PtxProblemKind::Operand { instruction: inst.op.into(), index: index + 1, reason })
    }

    fn operand(&self, inst: &'m AstInst<'a>, index: usize) -> Result<&'m AstOperand<'a>> {
        match inst.operands.get(index) {
            Some(operand) => Ok(operand),
            None => self.bad(inst, index, "is missing"),
        }
    }

    fn count(&self, inst: &AstInst<'_>, allowed: std::ops::RangeInclusive<usize>) -> Result<()> {
        let given = inst.operands.len();
        if allowed.contains(&given) {
            Ok(())
        } else if given > *allowed.end() {
            self.bad(inst, *allowed.end(), "is one too many")
        } else {
            self.bad(inst, given, "is missing")
        }
    }
}
