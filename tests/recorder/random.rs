//! Random collectives as text, from a seed. Each is one that the parser accepts; what it does may well be wrong, which
//! both ways of running it must then say in the same words.

mod value;

use std::fmt::Write;

/// World sizes are compared from 1 to this one, and no random collective takes long for it.
pub(crate) const LARGEST: u32 = 9;

/// xorshift*: the same numbers for the same seed everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }

    /// One time in `n`.
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Int,
    Bool,
    Pair,
    /// `[i64; 3]`
    Array,
    /// `(i64, [(i64, bool); 2])`
    Nested,
    Unit,
}

const TYPES: [Type; 5] = [Type::Int, Type::Bool, Type::Pair, Type::Array, Type::Nested];
const INTEGERS: [&str; 6] = ["i64", "u8", "i32", "usize", "i8", "u64"];

#[derive(Clone)]
struct Variable {
    name: String,
    ty: Type,
    mutable: bool,
}

#[derive(Clone)]
struct Function {
    name: String,
    parameters: Vec<Type>,
    result: Type,
}

struct Writer {
    random: Random,
    text: String,
    indent: usize,
    in_place: bool,
    custom: bool,
    variables: Vec<Variable>,
    functions: Vec<Function>,
    /// Names given so far.
    names: usize,
    /// Blocks, loops and expressions around this place.
    depth: usize,
    /// Loops and calls around this place: what is inside runs often.
    loops: usize,
}

/// The text of `count` collectives, `random0` and on.
pub(crate) fn collectives(seed: u64, count: usize) -> String {
    let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut writer = Writer {
        random,
        text: String::new(),
        indent: 0,
        in_place: false,
        custom: false,
        variables: Vec::new(),
        functions: Vec::new(),
        names: 0,
        depth: 0,
        loops: 0,
    };
    for i in 0..count {
        writer.collective(i);
    }
    writer.text
}

impl Writer {
    fn line(&mut self, line: &str) {
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn name(&mut self) -> String {
        self.names += 1;
        // Names that the rewritten body also uses for itself, and shadowing.
        let names = [
            "tape",
            "outer",
            "value",
            "now",
            "open",
            "steps",
            "assigned",
            "base",
            "index0",
            "argument0",
            "k",
        ];
        let name = self.random.pick(&names);
        if self.random.one_in(3) { name.to_owned() } else { format!("v{}", self.names) }
    }

    fn collective(&mut self, i: usize) {
        self.in_place = self.random.one_in(2);
        let chunks = self.random.pick(&["4", "RANKS", "RANKS * 2", "{ let c = RANKS + 1; c.max(3) }"]);
        self.custom = self.random.one_in(4);
        if self.custom {
            self.in_place = false;
        }
        let kind = self.random.pick(&["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]);
        let kind = if self.custom { "custom" } else { kind };
        let in_place = if self.in_place { ", in_place" } else { "" };
        let nodes = self.random.pick(&["1", "RANKS", "if RANKS == 4 { 2 } else { 1 }"]);
        self.variables.clear();
        self.functions.clear();
        self.line(&format!("#[collective({kind}, ranks = [2, 4], chunks = {chunks}{in_place}, nodes = {nodes}, params(k = [1, 2, -3]), scratch = k * k)]"));
        if self.random.one_in(3) {
            self.line("#[schedule(protocol = LL, up_to = \"4KiB\")]");
            self.line("#[schedule(blocks = 8, transport = get)]");
        }
        self.line(&format!("fn random{i}() {{"));
        self.indent += 1;
        for _ in 0..self.random.below(3) {
            self.function();
        }
        for _ in 0..4 + self.random.below(8) {
            self.statement();
        }
        self.indent -= 1;
        self.line("}\n");
    }

    fn ty(&mut self, ty: Type) -> String {
        let int = self.random.pick(&INTEGERS);
        match ty {
            Type::Int => int.to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Pair => format!("(i64, {int})"),
            Type::Array => format!("[{int}; 3]"),
            Type::Nested => format!("({int}, [(i64, bool); 2])"),
            Type::Unit => "()".to_owned(),
        }
    }

    /// A nested fn that calls none but those before it, or itself with a smaller first argument.
    fn function(&mut self) {
        let name = format!("f{}", self.functions.len());
        let outside = std::mem::take(&mut self.variables);
        if self.random.one_in(4) {
            self.line(&format!("fn {name}(n: i64) -> i64 {{"));
            self.line("    if n <= 0 {");
            self.line("        RANKS");
            self.line("    } else {");
            let step = self.random.pick(&["1", "1", "2", "0"]);
            self.line(&format!("        {name}(n - {step}) + 1"));
            self.line("    }");
            self.line("}");
            self.functions.push(Function { name, parameters: vec![Type::Int], result: Type::Int });
            self.variables = outside;
            return;
        }
        let parameters: Vec<Type> = (0..self.random.below(3)).map(|_| self.random.pick(&TYPES)).collect();
        let result = if self.random.one_in(2) { Type::Unit } else { self.random.pick(&TYPES) };
        let mut written = Vec::new();
        for &ty in &parameters {
            let (pattern, bound) = self.pattern(ty);
            self.variables.extend(bound);
            written.push(format!("{pattern}: {}", self.ty(ty)));
        }
        let arrow = if result == Type::Unit { String::new() } else { format!(" -> {}", self.ty(result)) };
        self.line(&format!("fn {name}({}){arrow} {{", written.join(", ")));
        self.indent += 1;
        self.loops += 1;
        for _ in 0..self.random.below(3) {
            self.statement();
        }
        if result != Type::Unit {
            let value = self.value(result);
            self.line(&value);
        }
        self.loops -= 1;
        self.indent -= 1;
        self.line("}");
        self.variables = outside;
        self.functions.push(Function { name, parameters, result });
    }

    /// A pattern for a value of a type, and the variables that it binds.
    fn pattern(&mut self, ty: Type) -> (String, Vec<Variable>) {
        let bind = |writer: &mut Writer, ty| {
            let (name, mutable) = (writer.name(), writer.random.one_in(2));
            let text = format!("{}{name}", if mutable { "mut " } else { "" });
            (text, Variable { name, ty, mutable })
        };
        match self.random.below(4) {
            0 if ty == Type::Pair => {
                let (a, first) = bind(self, Type::Int);
                let (b, mut second) = bind(self, Type::Int);
                if first.name == second.name {
                    second.name = "b".to_owned();
                    return (format!("({a}, b)"), vec![first, Variable { mutable: false, ..second }]);
                }
                (format!("({a}, {b})"), vec![first, second])
            }
            0 if ty == Type::Nested => {
                let (a, first) = bind(self, Type::Int);
                (format!("({a}, _)"), vec![first])
            }
            1 if self.random.one_in(4) => ("_".to_owned(), Vec::new()),
            _ => {
                let (text, variable) = bind(self, ty);
                (text, vec![variable])
            }
        }
    }

    fn block(&mut self, head: &str, inside: impl FnOnce(&mut Writer)) {
        self.line(&format!("{head} {{"));
        self.indent += 1;
        self.depth += 1;
        let variables = self.variables.len();
        inside(self);
        self.variables.truncate(variables);
        self.depth -= 1;
        self.indent -= 1;
        self.line("}");
    }

    fn statements(&mut self) {
        for _ in 0..1 + self.random.below(3) {
            self.statement();
        }
    }

    fn statement(&mut self) {
        let deep = self.depth > 3 || self.loops > 2;
        match self.random.below(if deep { 11 } else { 18 }) {
            0..=2 => self.binding(),
            3..=4 => self.assignment(),
            5 if self.custom => self.promise(),
            6 if self.random.one_in(3) => self.exchange(),
            5..=8 => self.movement(),
            9 => self.assertion(),
            10 => {
                let ty = self.random.pick(&TYPES);
                let value = self.value(ty);
                let start = self.random.pick(&["let _", "_"]);
                self.line(&format!("{start} = {value};"));
            }
            11..=13 => self.for_loop(),
            14 => self.while_loop(),
            15..=16 => self.branch(),
            _ => {
                let on = self.on();
                let called = self.call(Type::Unit);
                match called {
                    Some(call) if self.random.one_in(2) => self.line(&format!("{on}{call};")),
                    _ => self.block(on.trim_end(), Writer::statements),
                }
            }
        }
    }

    fn on(&mut self) -> String {
        let mut attributes = String::new();
        if self.random.one_in(2) {
            attributes = format!("#[on({})] ", self.rank());
        }
        match self.random.below(12) {
            0 => attributes += &format!("#[channel({})] ", self.random.below(3)),
            1 => attributes += &format!("#[block({})] ", self.value(Type::Int)),
            2 => attributes += "#[multimem] ",
            3 => attributes += "#[schedule(transport = get, protocol = Simple)] ",
            _ => {}
        }
        attributes
    }

    fn binding(&mut self) {
        let ty = self.random.pick(&TYPES);
        let value = self.value(ty);
        let (pattern, bound) = self.pattern(ty);
        let annotation = if self.random.one_in(3) { format!(": {}", self.ty(ty)) } else { String::new() };
        self.line(&format!("let {pattern}{annotation} = {value};"));
        self.variables.extend(bound);
    }

    /// Variables of a type in scope: of several of one name only the last.
    fn known(&self, ty: Type, mutable: bool) -> Vec<String> {
        let last = |v: &Variable| self.variables.iter().rev().find(|other| other.name == v.name);
        self.variables
            .iter()
            .filter(|v| last(v).is_some_and(|l| l.ty == ty && (l.mutable || !mutable)))
            .map(|v| v.name.clone())
            .collect()
    }

    /// What may be assigned a number.
    fn target(&mut self) -> Option<String> {
        let mut targets = self.known(Type::Int, true);
        for (ty, part) in [(Type::Pair, ".0"), (Type::Pair, ".1"), (Type::Nested, ".0")] {
            targets.extend(self.known(ty, true).iter().map(|name| format!("{name}{part}")));
        }
        let index = self.index(3);
        targets.extend(self.known(Type::Array, true).iter().map(|name| format!("{name}[{index}]")));
        let index = self.index(2);
        targets.extend(self.known(Type::Nested, true).iter().map(|name| format!("{name}.1[{index}].0")));
        if targets.is_empty() { None } else { Some(self.random.pick(&targets)) }
    }

    fn assignment(&mut self) {
        let Some(target) = self.target() else { return self.binding() };
        match self.random.below(5) {
            0 => {
                let ty = self.random.pick(&TYPES);
                let whole = self.known(ty, true);
                if whole.is_empty() {
                    return;
                }
                let (name, value) = (self.random.pick(&whole), self.value(ty));
                self.line(&format!("{name} = {value};"));
            }
            1 => {
                let Some(second) = self.target() else { return };
                let value = self.value(Type::Pair);
                self.line(&format!("({target}, {second}) = {value};"));
            }
            2 => {
                let value = self.value(Type::Int);
                self.line(&format!("{target} = {value};"));
            }
            _ => {
                let op =
                    self.random.pick(&["+=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="]);
                let value = self.value(Type::Int);
                self.line(&format!("{target} {op} {value};"));
            }
        }
    }

    fn assertion(&mut self) {
        let condition = self.value(Type::Bool);
        let condition = if self.random.one_in(6) { condition } else { format!("{condition} || true") };
        let mut message = String::from("seen {{}} {RANKS}");
        for ty in TYPES {
            if let Some(name) = self.known(ty, false).first() {
                let _ = write!(message, ", {{{name}}}");
            }
        }
        match self.random.below(3) {
            0 => self.line(&format!("assert!({condition});")),
            _ => self.line(&format!("assert!({condition}, \"{message}\");")),
        }
    }

    fn for_loop(&mut self) {
        let (start, end) = match self.random.below(4) {
            0 => ("0".to_owned(), "RANKS".to_owned()),
            1 => ("1".to_owned(), "RANKS".to_owned()),
            2 => (self.random.below(3).to_string(), self.random.below(6).to_string()),
            _ => {
                let from = self.value(Type::Int);
                (format!("({from}).rem_euclid(3)"), "RANKS - 1".to_owned())
            }
        };
        let dots = if self.random.one_in(4) { "..=" } else { ".." };
        let mut range = format!("{start}{dots}{end}");
        for _ in 0..self.random.below(3) {
            let adaptor = match self.random.below(8) {
                0 => {
                    let by = self.value(Type::Int);
                    format!(".step_by({by})")
                }
                1..=3 => format!(".step_by({})", 1 + self.random.below(3)),
                _ => ".rev()".to_owned(),
            };
            range = format!("({range}){adaptor}");
        }
        let name = if self.random.one_in(6) { "_".to_owned() } else { self.name() };
        let mutable = name != "_" && self.random.one_in(6);
        let on = self.on();
        self.loops += 1;
        let head = format!("{on}for {}{name} in {range}", if mutable { "mut " } else { "" });
        self.block(&head, |writer| {
            if name != "_" {
                writer.variables.push(Variable { name, ty: Type::Int, mutable });
            }
            writer.statements();
        });
        self.loops -= 1;
    }

    fn while_loop(&mut self) {
        self.names += 1;
        let name = format!("left{}", self.names);
        let from = self.random.pick(&["3", "RANKS", "RANKS + 2"]);
        self.line(&format!("let mut {name} = {from};"));
        let condition = self.value(Type::Bool);
        let condition = if self.random.one_in(3) { format!(" && {condition}") } else { String::new() };
        self.loops += 1;
        self.block(&format!("while {name} > 0{condition}"), |writer| {
            writer.statements();
            let step = writer.random.pick(&["-= 1", "/= 2", ">>= 1"]);
            writer.line(&format!("{name} {step};"));
        });
        self.loops -= 1;
        self.variables.push(Variable { name, ty: Type::Int, mutable: false });
    }

    fn branch(&mut self) {
        let on = self.on();
        let condition = self.value(Type::Bool);
        self.block(&format!("{on}if {condition}"), Writer::statements);
        if self.random.one_in(2) {
            // On the closing brace's line, as a formatter would put it.
            self.text.truncate(self.text.trim_end().len());
            let other = if self.random.one_in(3) {
                let condition = self.value(Type::Bool);
                format!(" else if {condition} {{\n")
            } else {
                " else {\n".to_owned()
            };
            self.text.push_str(&other);
            self.indent += 1;
            self.depth += 1;
            let variables = self.variables.len();
            self.statements();
            self.variables.truncate(variables);
            self.depth -= 1;
            self.indent -= 1;
            self.line("}");
        }
    }

    /// A rank, most often one of the world.
    fn rank(&mut self) -> String {
        let ints = self.known(Type::Int, false);
        match self.random.below(20) {
            0 => self.value(Type::Int),
            1..=6 if !ints.is_empty() => {
                let name = self.random.pick(&ints);
                format!("{name}.rem_euclid(RANKS)")
            }
            7..=9 => "0".to_owned(),
            10 => "RANKS - 1".to_owned(),
            _ => {
                let value = self.value(Type::Int);
                format!("({value}).rem_euclid(RANKS)")
            }
        }
    }

    fn chunk(&mut self) -> String {
        match self.random.below(12) {
            0 => self.value(Type::Int),
            1..=5 => self.random.below(3).to_string(),
            _ => {
                let value = self.value(Type::Int);
                format!("({value}).rem_euclid(3)")
            }
        }
    }

    /// One chunk of a rank.
    fn one(&mut self, buffers: &[&str]) -> String {
        let (buffer, rank, chunk) = (self.random.pick(buffers).to_owned(), self.rank(), self.chunk());
        format!("{buffer}[{rank}][{chunk}]")
    }

    fn promise(&mut self) {
        let dest = self.one(&["output"]);
        if self.random.one_in(3) {
            return self.line(&format!("unspecified!({dest});"));
        }
        let sources = [self.one(&["input"]), self.one(&["input"]), "reduce(input[..][0])".to_owned()];
        let source =
            if self.random.one_in(3) { sources[..2].join(" + ") } else { self.random.pick(&sources) };
        self.line(&format!("expect!({dest} == {source});"));
    }

    fn exchange(&mut self) {
        let (stored, read) = match self.in_place {
            true => (["data", "scratch"], ["data", "scratch"]),
            false => (["output", "scratch"], ["input", "output"]),
        };
        let dests = [self.one(&stored), self.one(&stored)].join(", ");
        let sources = [self.one(&read), self.one(&read)].join(", ");
        let on = self.on();
        self.line(&format!("{on}({dests}) = ({sources});"));
    }

    fn movement(&mut self) {
        let length = if self.random.one_in(3) { 2 } else { 1 };
        let chunks = |writer: &mut Writer| {
            let chunk = writer.chunk();
            if length == 1 {
                chunk
            } else if writer.random.one_in(3) {
                format!("{chunk}..={chunk} + 1")
            } else {
                format!("{chunk}..{chunk} + 2")
            }
        };
        let source = |writer: &mut Writer| match writer.in_place {
            true => writer.random.pick(&["data", "data", "scratch"]),
            false => writer.random.pick(&["input", "input", "output", "scratch"]),
        };
        let dest = if self.in_place { "data" } else { "output" };
        let dest = if self.random.one_in(5) { "scratch" } else { dest };
        let group = format!("[{}, {}]", self.rank(), self.rank());
        let arrays = self.known(Type::Array, false);
        let group =
            if arrays.is_empty() || self.random.one_in(2) { group } else { self.random.pick(&arrays) };
        let several = if self.random.one_in(2) { "..".to_owned() } else { group };
        let many = self.random.one_in(3);
        let left = {
            let ranks = if many { several.clone() } else { self.rank() };
            let chunks = chunks(self);
            format!("{dest}[{ranks}][{chunks}]")
        };
        let operand = |writer: &mut Writer, ranks: Option<&str>| {
            let buffer = source(writer);
            let ranks = ranks.map_or_else(|| writer.rank(), str::to_owned);
            let chunks = chunks(writer);
            format!("{buffer}[{ranks}][{chunks}]")
        };
        let ranks = self.random.pick(&["..", "[0, 1]"]);
        let right = match self.random.below(8) {
            0 if many => operand(self, Some(&several)),
            0..=2 => operand(self, None),
            3..=4 => {
                let pairs = many && self.random.one_in(2);
                let first = operand(self, pairs.then_some(&several[..]));
                format!("{first} + {}", operand(self, None))
            }
            5 => {
                format!("reduce([{}, {}, {}])", operand(self, None), operand(self, None), operand(self, None))
            }
            _ => format!("reduce({})", operand(self, Some(ranks))),
        };
        let on = self.on();
        let op = if self.random.one_in(2) && !right.contains("reduce") && !right.contains("] + ") {
            "+="
        } else {
            "="
        };
        self.line(&format!("{on}{left} {op} {right};"));
    }
}
