//! Random expressions.

use super::{Function, INTEGERS, Type, Variable, Writer};

impl Writer {
    pub(super) fn index(&mut self, len: usize) -> String {
        match self.random.below(6) {
            0 => {
                let value = self.value(Type::Int);
                format!("({value}).rem_euclid({len})")
            }
            1 if self.random.one_in(6) => len.to_string(),
            _ => self.random.below(len).to_string(),
        }
    }

    pub(super) fn call(&mut self, result: Type) -> Option<String> {
        let of_type: Vec<Function> = self.functions.iter().filter(|f| f.result == result).cloned().collect();
        if of_type.is_empty() || self.depth > 5 {
            return None;
        }
        let function = self.random.pick(&of_type);
        self.depth += 2;
        let arguments: Vec<String> = function.parameters.iter().map(|&ty| self.value(ty)).collect();
        self.depth -= 2;
        Some(format!("{}({})", function.name, arguments.join(", ")))
    }

    /// An expression of a type, without a blank at its ends, that can be an operand.
    pub(super) fn value(&mut self, ty: Type) -> String {
        self.depth += 1;
        let value = self.value_here(ty);
        self.depth -= 1;
        value
    }

    fn value_here(&mut self, ty: Type) -> String {
        let known = self.known(ty, false);
        if !known.is_empty() && (self.depth > 5 || self.random.one_in(3)) {
            return self.random.pick(&known);
        }
        if self.depth <= 5 {
            match self.random.below(14) {
                0 => {
                    let (condition, then) = (self.value(Type::Bool), self.value(ty));
                    let otherwise = self.value(ty);
                    return format!("(if {condition} {{ {then} }} else {{ {otherwise} }})");
                }
                1 => {
                    let (name, inner) = (self.name(), self.value(Type::Int));
                    let variables = self.variables.len();
                    self.variables.push(Variable { name: name.clone(), ty: Type::Int, mutable: false });
                    let value = self.value(ty);
                    self.variables.truncate(variables);
                    return format!("({{ let {name} = {inner}; {value} }})");
                }
                2 => {
                    if let Some(call) = self.call(ty) {
                        return call;
                    }
                }
                3 => {
                    // A part of a value without a name.
                    match ty {
                        Type::Int => {
                            let (a, b, index) = (self.value(Type::Int), self.value(Type::Int), self.index(2));
                            return format!("[{a}, {b}][{index}]");
                        }
                        Type::Pair => {
                            let (a, b) = (self.value(Type::Pair), self.value(Type::Bool));
                            return format!("({b}, {a}).1");
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        match ty {
            Type::Int => self.int(),
            Type::Bool => self.bool(),
            Type::Pair => format!("({}, {})", self.value(Type::Int), self.value(Type::Int)),
            Type::Array if self.random.one_in(3) => format!("[{}; 3]", self.value(Type::Int)),
            Type::Array => {
                let items = [self.value(Type::Int), self.value(Type::Int), self.value(Type::Int)];
                format!("[{}]", items.join(", "))
            }
            Type::Nested => {
                let (int, bool) = (self.value(Type::Int), self.value(Type::Bool));
                format!("({int}, [({int}, {bool}), ({}, false)])", self.random.below(9))
            }
            Type::Unit => "()".to_owned(),
        }
    }

    fn int(&mut self) -> String {
        let leaf = self.depth > 5 || self.random.one_in(3);
        if leaf {
            return match self.random.below(24) {
                0..=4 => "RANKS".to_owned(),
                5..=6 => {
                    // A variable may have taken the parameter's name.
                    let k = self.variables.iter().rev().find(|variable| variable.name == "k");
                    let k = if k.is_none_or(|k| k.ty == Type::Int) { "k" } else { "2" };
                    self.random.pick(&[k, k, "NODES", "LOCAL_RANKS"]).to_owned()
                }
                7 => format!("(-{})", self.random.below(5)),
                8 => self.random.pick(&["0x1f", "1_000", "(7u8)", "0b11", "3i64"]).to_owned(),
                9 if self.random.one_in(4) => {
                    self.random.pick(&["9223372036854775807", "(-9223372036854775808)"]).to_owned()
                }
                _ => self.random.below(6).to_string(),
            };
        }
        match self.random.below(30) {
            0..=11 => {
                let op = self.random.pick(&["+", "+", "-", "*", "/", "%"]);
                let (left, right) = (self.value(Type::Int), self.value(Type::Int));
                // Most runs are to go on.
                let rarely_zero = matches!(op, "/" | "%") && !self.random.one_in(8);
                let right =
                    if rarely_zero { self.random.pick(&["RANKS", "3", "(-2)"]).to_owned() } else { right };
                format!("({left} {op} {right})")
            }
            12..=13 => {
                let op = self.random.pick(&["&", "|", "^"]);
                format!("({} {op} {})", self.value(Type::Int), self.value(Type::Int))
            }
            14 => {
                let op = self.random.pick(&["<<", ">>"]);
                format!("({} {op} {})", self.value(Type::Int), self.random.below(5))
            }
            15..=17 => {
                let method = self.random.pick(&["min", "max", "div_ceil", "rem_euclid"]);
                let divides = method.contains('_') && !self.random.one_in(8);
                let argument = if divides { "RANKS".to_owned() } else { self.value(Type::Int) };
                format!("({}).{method}({argument})", self.value(Type::Int))
            }
            18 => format!("({}).pow({})", self.value(Type::Int), self.random.below(4)),
            19 => {
                format!("({}).{}()", self.value(Type::Int), self.random.pick(&["abs", "abs", "abs", "ilog2"]))
            }
            20..=21 => {
                let ty = self.random.pick(&INTEGERS);
                let of = if self.random.one_in(2) { Type::Int } else { Type::Bool };
                format!("({} as {ty})", self.value(of))
            }
            22 => format!("(-{})", self.value(Type::Int)),
            23 => format!("(!{})", self.value(Type::Int)),
            24..=26 => {
                let pairs = self.known(Type::Pair, false);
                let part = self.random.below(2);
                if pairs.is_empty() { "2".to_owned() } else { format!("{}.{part}", self.random.pick(&pairs)) }
            }
            27..=28 => {
                let (arrays, index) = (self.known(Type::Array, false), self.index(3));
                if arrays.is_empty() {
                    "3".to_owned()
                } else {
                    format!("{}[{index}]", self.random.pick(&arrays))
                }
            }
            _ => {
                let (nested, index) = (self.known(Type::Nested, false), self.index(2));
                if nested.is_empty() {
                    "4".to_owned()
                } else {
                    format!("{}.1[{index}].0", self.random.pick(&nested))
                }
            }
        }
    }

    fn bool(&mut self) -> String {
        if self.depth > 5 {
            return self.random.pick(&["true", "false", "(RANKS > 2)"]).to_owned();
        }
        match self.random.below(12) {
            0..=6 => {
                let op = self.random.pick(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({} {op} {})", self.value(Type::Int), self.value(Type::Int))
            }
            7..=8 => {
                let op = self.random.pick(&["&&", "||", "^", "&", "|", "=="]);
                format!("({} {op} {})", self.value(Type::Bool), self.value(Type::Bool))
            }
            9 => format!("(!{})", self.value(Type::Bool)),
            10 => format!("({}).is_power_of_two()", self.value(Type::Int)),
            _ => self.random.pick(&["true", "false"]).to_owned(),
        }
    }
}
