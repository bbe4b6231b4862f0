//! Expressions over integers, bools, tuples and arrays.

use super::lift::attributes;
use super::parser::{BodyParser, Nodes, Typed, text};
use quadrille_compiler::body::arithmetic::{BinaryOp, IntType, UnaryOp};
use quadrille_compiler::body::{ArrayIndex, Expr, FnCall, KnownName, PARTS, StmtBlock, Type, VariablePart};
use quadrille_compiler::diagnostic::{Check, Diagnostic, Loc};
use quote::ToTokens;
use syn::{BinOp, Lit, LitInt, Member, UnOp};

/// The methods of integers, with what they do.
const METHODS: &str = "min, max, pow, ilog2, is_power_of_two, div_ceil, rem_euclid, abs";

impl BodyParser {
    /// An integer.
    pub(super) fn int(&mut self, expr: &syn::Expr, what: &str) -> Expr {
        self.typed(expr, &Type::INT, what)
    }

    /// A condition.
    pub(super) fn bool(&mut self, expr: &syn::Expr, what: &str) -> Expr {
        self.typed(expr, &Type::Bool, what)
    }

    /// An expression that must be of type `ty`; `what` names it in messages.
    pub(super) fn typed(&mut self, expr: &syn::Expr, ty: &Type, what: &str) -> Expr {
        let value = self.expr(expr);
        let loc = self.places.of(expr);
        self.fit(ty, value, loc, what)
    }

    /// Any expression.
    pub(super) fn expr(&mut self, expr: &syn::Expr) -> Typed {
        self.deeper(expr, |parser| parser.expr_here(expr)).unwrap_or_else(Typed::unknown)
    }

    fn expr_here(&mut self, expr: &syn::Expr) -> Typed {
        self.stray_attributes(attributes(expr));
        match expr {
            syn::Expr::Lit(lit) => self.literal(&lit.lit),
            syn::Expr::Path(path) => self.path(path),
            syn::Expr::Paren(paren) => self.expr(&paren.expr),
            syn::Expr::Group(group) => self.expr(&group.expr),
            syn::Expr::Unary(unary) => self.unary(unary),
            syn::Expr::Binary(binary) => self.binary(binary),
            syn::Expr::Cast(cast) => self.cast(cast),
            syn::Expr::Call(call) => self.call(call),
            syn::Expr::MethodCall(_) if self.operator_on_chunks(expr) => Typed::unknown(),
            syn::Expr::MethodCall(call) => self.method(call),
            syn::Expr::Field(_) | syn::Expr::Index(_) => self.part(expr),
            syn::Expr::Tuple(tuple) => {
                self.few_parts(tuple.elems.len(), tuple);
                let items: Vec<_> = tuple.elems.iter().map(|item| self.expr(item)).collect();
                let ty = Type::Tuple(items.iter().map(|item| item.ty.clone()).collect());
                Typed { expr: items_of(items), ty }
            }
            syn::Expr::Array(array) => self.array(array),
            syn::Expr::Repeat(repeat) => self.repeat(repeat),
            syn::Expr::If(branch) => self.branch(branch),
            syn::Expr::Block(block) => {
                self.no_label(block.label.as_ref());
                let (block, ty) = self.block(&block.block);
                Typed { expr: Expr::Block(Box::new(block)), ty }
            }
            _ => {
                self.no_expression(expr);
                Typed::unknown()
            }
        }
    }

    /// Reports a tuple of more parts than are shown.
    pub(super) fn few_parts(&mut self, parts: usize, tuple: impl ToTokens) {
        if parts > PARTS {
            let what = format!("a tuple of more than {PARTS} parts");
            self.outside(tuple, what, "use an array, or tuples of tuples");
        }
    }

    fn literal(&mut self, literal: &Lit) -> Typed {
        match literal {
            Lit::Bool(value) => Typed::bool(Expr::Const(i64::from(value.value))),
            Lit::Int(value) => {
                let loc = self.places.of(value);
                self.literal_number(value, value.base10_digits().parse().ok(), loc)
            }
            Lit::Float(_) => {
                self.outside(literal, "a floating-point number", "numbers are integers");
                Typed::unknown()
            }
            _ => {
                self.outside(literal, "a text or character", "values are integers and bools");
                Typed::unknown()
            }
        }
    }

    /// A literal of the value `number`, which is `None` beyond 64 bits.
    fn literal_number(&mut self, literal: &LitInt, number: Option<i64>, loc: Loc) -> Typed {
        let ty = match literal.suffix() {
            "" => IntType::I64,
            suffix => match IntType::named(suffix) {
                Some(ty) => ty,
                None => {
                    self.outside(literal, format!("a number of type `{suffix}`"), "numbers are integers");
                    return Typed::unknown();
                }
            },
        };
        let message = match number {
            None => format!("{literal} overflows a 64-bit integer"),
            Some(number) if !ty.holds(number) => format!("{number} is no `{}`", ty.name()),
            Some(number) => return Typed { expr: Expr::Const(number), ty: Type::Int(ty) },
        };
        self.report(Diagnostic::new(Check::Arithmetic, loc, message));
        Typed::unknown()
    }

    fn path(&mut self, path: &syn::ExprPath) -> Typed {
        let Some(name) = path.path.get_ident().filter(|_| path.qself.is_none()).map(ToString::to_string)
        else {
            self.outside(path, format!("the path `{}`", text(path)), "use numbers, `RANKS` and variables");
            return Typed::unknown();
        };
        if let Some(binding) = self.lookup(&name) {
            let ty = self.variables[binding.variable as usize].ty.clone();
            let (slot, variable) = (binding.slot, binding.variable);
            let expr = match ty {
                Type::Int(_) | Type::Bool | Type::Unknown => Expr::Local { slot, variable },
                _ => Expr::Part(Box::new(VariablePart {
                    slot,
                    size: ty.size(),
                    variable: Some(variable),
                    indices: Vec::new(),
                })),
            };
            return Typed { expr, ty };
        }
        match name.as_str() {
            "RANKS" => return Typed::int(Expr::Known(KnownName::Ranks)),
            "ROOT" => match self.known.as_ref().and_then(|known| known.kind) {
                Some(kind) if !kind.rooted() => {
                    self.syntax(path, format!("{kind} has no root, so that `ROOT` is not known"));
                }
                _ => return Typed::int(Expr::Known(KnownName::Root)),
            },
            "NODES" | "LOCAL_RANKS" => {
                let known = if name == "NODES" { KnownName::Nodes } else { KnownName::LocalRanks };
                match self.nodes {
                    Nodes::Said => return Typed::int(Expr::Known(known)),
                    Nodes::Here => {
                        self.syntax(
                            path,
                            format!("`{name}` is known by what `nodes = ..` says, which is this"),
                        );
                    }
                    Nodes::Unsaid => {
                        self.syntax(path, format!("`{name}` is known only with the option `nodes`"))
                            .help("say over how many nodes the ranks are spread: `nodes = 2`");
                    }
                }
            }
            "input" | "output" | "data" | "scratch" => {
                self.syntax(path, format!("`{name}` is a buffer, no number"))
                    .help("chunks are moved by assignment: `output[r][c] = input[s][c];`");
            }
            _ if self.param(&name).is_some() => match self.param(&name) {
                Some(param) if !self.in_helper => return Typed::int(Expr::Known(KnownName::Param(param))),
                _ => {
                    self.syntax(
                        path,
                        format!("`{name}` is a parameter of one collective, and this fn is shared"),
                    )
                    .help("pass it as an argument");
                }
            },
            _ if self.hidden.contains(&name) => {
                self.syntax(path, format!("`{name}` is a variable outside this fn"))
                    .help("a nested fn sees its parameters, `RANKS` and the buffers; pass it as an argument");
            }
            _ => self.no_value(path, &name),
        }
        Typed::unknown()
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> Typed {
        // The lowest number is a literal only together with its sign.
        if let (UnOp::Neg(_), syn::Expr::Lit(lit)) = (&unary.op, &*unary.expr)
            && let Lit::Int(digits) = &lit.lit
            && let Ok(number) = format!("-{}", digits.base10_digits()).parse()
        {
            let loc = self.places.of(unary);
            return self.literal_number(digits, Some(number), loc);
        }
        let loc = self.places.of(unary);
        match unary.op {
            UnOp::Neg(_) => {
                let operand = self.int(&unary.expr, "what `-` negates");
                Typed::int(Expr::Unary(UnaryOp::Neg, Box::new(operand), loc))
            }
            UnOp::Not(_) => {
                let operand = self.expr(&unary.expr);
                let (op, ty) = match operand.ty {
                    Type::Bool => (UnaryOp::Negate, Type::Bool),
                    Type::Int(_) | Type::Unknown => (UnaryOp::Not, Type::INT),
                    ref ty => {
                        let message = format!("`!` is of integers and bools, but this is of type `{ty}`");
                        self.syntax(&unary.expr, message);
                        return Typed::unknown();
                    }
                };
                Typed { expr: Expr::Unary(op, Box::new(operand.expr), loc), ty }
            }
            _ => {
                self.outside(unary, "`*`", "there are no references: leave it out");
                Typed::unknown()
            }
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary) -> Typed {
        let Some((op, ty)) = binary_op(&binary.op) else {
            self.outside(binary, "an assignment inside an expression", "make it a statement of its own");
            return Typed::unknown();
        };
        let left = self.expr(&binary.left);
        let right = self.expr(&binary.right);
        let symbol = binary.op.to_token_stream().to_string();
        // Bools can be compared for equality and joined bit by bit; everything else is of integers.
        let bools = matches!(op, Operator::And | Operator::Or)
            || (matches!(
                op,
                Operator::Binary(
                    BinaryOp::Eq | BinaryOp::Ne | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor
                )
            ) && left.ty == Type::Bool);
        let wanted = if bools { Type::Bool } else { Type::INT };
        let what = format!("an operand of `{symbol}`");
        for (operand, side) in [(&left, &binary.left), (&right, &binary.right)] {
            let loc = self.places.of(side);
            self.wanted(&wanted, &operand.ty, loc, &what);
        }
        let loc = self.places.of(binary);
        let pair = Box::new((left.expr, right.expr));
        let expr = match op {
            Operator::And => Expr::And(pair),
            Operator::Or => Expr::Or(pair),
            Operator::Binary(op) => Expr::Binary(op, pair, loc),
        };
        Typed { expr, ty: ty.unwrap_or(wanted) }
    }

    fn cast(&mut self, cast: &syn::ExprCast) -> Typed {
        let value = self.expr(&cast.expr);
        let name = text(&cast.ty);
        let loc = self.places.of(cast);
        match (IntType::named(&name), &value.ty) {
            (None, _) => {
                self.outside(
                    &cast.ty,
                    format!("a cast to `{name}`"),
                    "cast to an integer type, or not at all",
                );
                Typed::unknown()
            }
            (Some(to), Type::Bool) => Typed { expr: value.expr, ty: Type::Int(to) },
            (Some(_), ty) if !Type::INT.agrees(ty) => {
                self.syntax(&cast.expr, format!("a value of type `{ty}` is no number"));
                Typed::unknown()
            }
            (Some(to), _) => {
                Typed { expr: Expr::Unary(UnaryOp::Cast(to), Box::new(value.expr), loc), ty: Type::Int(to) }
            }
        }
    }

    fn call(&mut self, call: &syn::ExprCall) -> Typed {
        let name = text(&call.func);
        let known = self.function_scope.iter().rev().find(|(known, _)| *known == name);
        let Some(function) = known.map(|(_, function)| *function) else {
            self.no_function(call, &name);
            return Typed::unknown();
        };
        let (parameters, result) = {
            let function = &self.functions[function as usize];
            (function.parameters.clone(), function.result.clone())
        };
        if parameters.len() != call.args.len() {
            let (wanted, given) = (parameters.len(), call.args.len());
            self.syntax(call, format!("`{name}` takes {wanted} arguments, but {given} are given"));
        }
        let mut arguments = Vec::new();
        for (i, argument) in call.args.iter().enumerate() {
            let ty = parameters.get(i).unwrap_or(&Type::Unknown);
            let what = format!("argument {} of `{name}`", i + 1);
            arguments.push((ty.size(), self.typed(argument, ty, &what)));
        }
        let loc = self.places.of(call);
        Typed { expr: Expr::Call(Box::new(FnCall { function, arguments, loc })), ty: result }
    }

    fn method(&mut self, call: &syn::ExprMethodCall) -> Typed {
        let name = call.method.to_string();
        let unary = match name.as_str() {
            "abs" => Some(UnaryOp::Abs),
            "ilog2" => Some(UnaryOp::Ilog2),
            "is_power_of_two" => Some(UnaryOp::IsPowerOfTwo),
            _ => None,
        };
        let binary = match name.as_str() {
            "min" => Some(BinaryOp::Min),
            "max" => Some(BinaryOp::Max),
            "pow" => Some(BinaryOp::Pow),
            "div_ceil" => Some(BinaryOp::DivCeil),
            "rem_euclid" => Some(BinaryOp::RemEuclid),
            _ => None,
        };
        if unary.is_none() && binary.is_none() {
            if ["rev", "step_by"].contains(&name.as_str()) {
                self.syntax(call, format!("`.{name}(..)` is of ranges, which stand in a `for`"));
            } else {
                let message = format!("the method `{name}`");
                self.outside(&call.method, message, &format!("the methods of integers are {METHODS}"));
            }
            return Typed::unknown();
        }
        let receiver = self.int(&call.receiver, &format!("what `.{name}(..)` is called on"));
        let wanted = usize::from(binary.is_some());
        if call.args.len() != wanted {
            let given = call.args.len();
            self.syntax(call, format!("`.{name}(..)` takes {wanted} arguments, but {given} are given"));
            return Typed::unknown();
        }
        let loc = self.places.of(call);
        match (unary, binary) {
            (Some(op), _) => {
                let ty = if op == UnaryOp::IsPowerOfTwo { Type::Bool } else { Type::INT };
                Typed { expr: Expr::Unary(op, Box::new(receiver), loc), ty }
            }
            (None, Some(op)) => {
                let argument = self.int(&call.args[0], &format!("the argument of `.{name}(..)`"));
                Typed::int(Expr::Binary(op, Box::new((receiver, argument)), loc))
            }
            (None, None) => Typed::unknown(),
        }
    }

    /// `base.0` or `base[i]` as a value.
    fn part(&mut self, expr: &syn::Expr) -> Typed {
        let Some((place, ty, spilled)) = self.place(expr) else { return Typed::unknown() };
        let scalar = place.indices.is_empty() && matches!(ty, Type::Int(_) | Type::Bool | Type::Unknown);
        let expr = match place.variable {
            Some(variable) if scalar && self.variables[variable as usize].ty == ty => {
                Expr::Local { slot: place.slot, variable }
            }
            _ => Expr::Part(Box::new(place)),
        };
        match spilled {
            Some((value, at)) => Typed { expr: Expr::Spill(Box::new((value, at, expr))), ty },
            None => Typed { expr, ty },
        }
    }

    /// A variable or a part of it, its type, and, where it is a part of a value without a name, that value with the
    /// slot it is to be put to.
    #[expect(clippy::type_complexity, reason = "three things that only this file takes apart")]
    pub(super) fn place(&mut self, expr: &syn::Expr) -> Option<(VariablePart, Type, Option<(Expr, u32)>)> {
        match expr {
            syn::Expr::Paren(paren) => self.place(&paren.expr),
            syn::Expr::Group(group) => self.place(&group.expr),
            syn::Expr::Field(field) => {
                self.stray_attributes(&field.attrs);
                let (mut place, ty, spilled) = self.deeper(expr, |p| p.place(&field.base)).flatten()?;
                let index = match &field.member {
                    Member::Unnamed(index) => index.index as usize,
                    Member::Named(name) => {
                        self.syntax(&field.member, format!("nothing here has a field `{name}`"))
                            .help("the parts of a tuple are `.0`, `.1`, ..");
                        return None;
                    }
                };
                match &ty {
                    Type::Tuple(items) if index < items.len() => {
                        place.slot += items[..index].iter().map(Type::size).sum::<u32>();
                        place.size = items[index].size();
                        Some((place, items[index].clone(), spilled))
                    }
                    Type::Unknown => None,
                    _ => {
                        self.syntax(field, format!("a value of type `{ty}` has no part `.{index}`"));
                        None
                    }
                }
            }
            syn::Expr::Index(indexed) => {
                self.stray_attributes(&indexed.attrs);
                let (mut place, ty, spilled) = self.deeper(expr, |p| p.place(&indexed.expr)).flatten()?;
                let index = self.int(&indexed.index, "an index");
                match ty {
                    Type::Array(item, len) => {
                        place.size = item.size();
                        place.indices.push(ArrayIndex { index, len, stride: place.size });
                        Some((place, *item, spilled))
                    }
                    Type::Unknown => None,
                    _ => {
                        self.syntax(indexed, format!("a value of type `{ty}` has no index"));
                        None
                    }
                }
            }
            _ => {
                let value = self.expr(expr);
                let size = value.ty.size();
                match value.expr {
                    Expr::Local { slot, variable } => {
                        let place =
                            VariablePart { slot, size, variable: Some(variable), indices: Vec::new() };
                        Some((place, value.ty, None))
                    }
                    Expr::Part(place) => Some((*place, value.ty, None)),
                    _ if value.ty == Type::Unknown => None,
                    value_expr => {
                        let at = self.slots(size, expr);
                        let place = VariablePart { slot: at, size, variable: None, indices: Vec::new() };
                        Some((place, value.ty, Some((value_expr, at))))
                    }
                }
            }
        }
    }

    fn array(&mut self, array: &syn::ExprArray) -> Typed {
        let items: Vec<_> = array.elems.iter().map(|item| self.expr(item)).collect();
        let Some(first) = items.first() else {
            self.syntax(array, "an array without items").help("give it one");
            return Typed::unknown();
        };
        let mut ty = first.ty.clone();
        for (item, text) in items.iter().zip(&array.elems) {
            let loc = self.places.of(text);
            self.wanted(&ty, &item.ty, loc, "an item of this array");
            if ty.agrees(&item.ty) {
                ty = ty.either(&item.ty);
            }
        }
        let ty = Type::Array(Box::new(ty), items.len() as u32);
        Typed { expr: items_of(items), ty }
    }

    fn repeat(&mut self, repeat: &syn::ExprRepeat) -> Typed {
        let item = self.expr(&repeat.expr);
        let Some(len) = array_len(&repeat.len) else {
            self.syntax(&repeat.len, "the length of an array is a literal number, at least 1");
            return Typed::unknown();
        };
        let size = item.ty.size();
        let ty = Type::Array(Box::new(item.ty), len);
        Typed { expr: Expr::Repeat(Box::new(item.expr), len, size), ty }
    }

    fn branch(&mut self, branch: &syn::ExprIf) -> Typed {
        let condition = self.bool(&branch.cond, "the condition of an `if`");
        let (then, ty) = self.block(&branch.then_branch);
        let (otherwise, other) = match &branch.else_branch {
            None => (StmtBlock::default(), Type::unit()),
            Some((_, otherwise)) => match &**otherwise {
                syn::Expr::Block(block) => {
                    self.stray_attributes(&block.attrs);
                    self.block(&block.block)
                }
                other => {
                    let loc = self.head(other);
                    let Typed { expr, ty } = self.expr(other);
                    (StmtBlock { statements: Vec::new(), value: Some((loc, expr)) }, ty)
                }
            },
        };
        if !ty.agrees(&other) {
            let message = format!("one branch of this `if` is of type `{ty}`, the other of type `{other}`");
            self.syntax(branch, message);
        }
        let ty = if ty.agrees(&other) { ty.either(&other) } else { ty };
        Typed { expr: Expr::If(Box::new((condition, then, otherwise))), ty }
    }

    pub(super) fn no_label(&mut self, label: Option<&syn::Label>) {
        if let Some(label) = label {
            self.outside(label, "a label", "leave it out; there is no `break`");
        }
    }
}

/// An operator of two operands.
enum Operator {
    And,
    Or,
    Binary(BinaryOp),
}

/// The operator, and its result's type where that is not its operands'. `None` for assignments.
fn binary_op(op: &BinOp) -> Option<(Operator, Option<Type>)> {
    Some(match op {
        BinOp::And(_) => (Operator::And, None),
        BinOp::Or(_) => (Operator::Or, None),
        BinOp::Add(_) => (Operator::Binary(BinaryOp::Add), None),
        BinOp::Sub(_) => (Operator::Binary(BinaryOp::Sub), None),
        BinOp::Mul(_) => (Operator::Binary(BinaryOp::Mul), None),
        BinOp::Div(_) => (Operator::Binary(BinaryOp::Div), None),
        BinOp::Rem(_) => (Operator::Binary(BinaryOp::Rem), None),
        BinOp::BitXor(_) => (Operator::Binary(BinaryOp::BitXor), None),
        BinOp::BitAnd(_) => (Operator::Binary(BinaryOp::BitAnd), None),
        BinOp::BitOr(_) => (Operator::Binary(BinaryOp::BitOr), None),
        BinOp::Shl(_) => (Operator::Binary(BinaryOp::Shl), None),
        BinOp::Shr(_) => (Operator::Binary(BinaryOp::Shr), None),
        BinOp::Eq(_) => (Operator::Binary(BinaryOp::Eq), Some(Type::Bool)),
        BinOp::Lt(_) => (Operator::Binary(BinaryOp::Lt), Some(Type::Bool)),
        BinOp::Le(_) => (Operator::Binary(BinaryOp::Le), Some(Type::Bool)),
        BinOp::Ne(_) => (Operator::Binary(BinaryOp::Ne), Some(Type::Bool)),
        BinOp::Ge(_) => (Operator::Binary(BinaryOp::Ge), Some(Type::Bool)),
        BinOp::Gt(_) => (Operator::Binary(BinaryOp::Gt), Some(Type::Bool)),
        _ => return None,
    })
}

/// The operator of `x op= y`.
pub(crate) fn assigning_op(op: &BinOp) -> Option<BinaryOp> {
    Some(match op {
        BinOp::AddAssign(_) => BinaryOp::Add,
        BinOp::SubAssign(_) => BinaryOp::Sub,
        BinOp::MulAssign(_) => BinaryOp::Mul,
        BinOp::DivAssign(_) => BinaryOp::Div,
        BinOp::RemAssign(_) => BinaryOp::Rem,
        BinOp::BitXorAssign(_) => BinaryOp::BitXor,
        BinOp::BitAndAssign(_) => BinaryOp::BitAnd,
        BinOp::BitOrAssign(_) => BinaryOp::BitOr,
        BinOp::ShlAssign(_) => BinaryOp::Shl,
        BinOp::ShrAssign(_) => BinaryOp::Shr,
        _ => return None,
    })
}

/// The literal length of an array, at least 1.
pub(crate) fn array_len(expr: &syn::Expr) -> Option<u32> {
    match expr {
        syn::Expr::Lit(lit) => match &lit.lit {
            Lit::Int(len) => len.base10_parse().ok().filter(|len| *len > 0),
            _ => None,
        },
        syn::Expr::Group(group) => array_len(&group.expr),
        _ => None,
    }
}

fn items_of(items: Vec<Typed>) -> Expr {
    Expr::Items(items.into_iter().map(|item| (item.ty.size(), item.expr)).collect())
}
