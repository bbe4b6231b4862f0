//! Constructs of Rust that are outside the language: what each is called, and what to write instead.

use super::parser::{BodyParser, text};
use syn::{Expr, Item, Pat, Type};

/// The help for arithmetic on the values of chunks.
pub(super) const NO_ARITHMETIC: &str = "a collective moves and combines data; for a mean call it with the operator avg, \
    for a factor on every input with premul_sum, and compute anything else before or after it";

impl BodyParser {
    /// Reports an expression that is outside the language.
    pub(super) fn no_expression(&mut self, expr: &Expr) {
        let (what, instead) = match expr {
            Expr::Assign(_) => ("an assignment inside an expression", "make it a statement of its own"),
            Expr::Match(_) => ("`match`", "write `if`/`else`"),
            Expr::Let(_) => ("`if let`", "write a `let` and an `if`"),
            Expr::Loop(_) => ("`loop`", "write `while` with a condition, or `for` over a range"),
            Expr::While(_) | Expr::ForLoop(_) => {
                ("a loop inside an expression", "make it a statement of its own")
            }
            Expr::Break(_) => ("`break`", "put the condition into a `while`"),
            Expr::Continue(_) => ("`continue`", "put the rest of the loop into an `if`"),
            Expr::Return(_) => {
                ("`return`", "write `if`/`else`; a fn's value is its last expression, without `;`")
            }
            Expr::Yield(_) => ("`yield`", "leave it out"),
            Expr::Closure(_) => ("a closure", "write a nested `fn`"),
            Expr::Range(_) => {
                ("a range as a value", "ranges stand in `for .. in` and in the index of a buffer")
            }
            Expr::Reference(_) | Expr::RawAddr(_) => {
                ("a reference", "there are only values: leave the `&` out")
            }
            Expr::Struct(_) => ("a struct", "write a tuple"),
            Expr::Macro(call) => {
                let what = format!("`{}!`", text(&call.mac.path));
                let instead = match text(&call.mac.path).as_str() {
                    "vec" => "write an array: `[a, b]`, or `[a; 4]`",
                    "print" | "println" | "eprint" | "eprintln" | "dbg" => {
                        "the body runs while the collective is compiled, and prints nothing: leave it out; `assert!` shows values"
                    }
                    "panic" | "todo" | "unreachable" | "unimplemented" => {
                        "write `assert!(condition, \"message\")`"
                    }
                    "assert_eq" | "assert_ne" | "debug_assert" => "write `assert!(a == b, \"message\")`",
                    _ => {
                        "the macros are `assert!`, `expect!` and `unspecified!`, each a statement of its own"
                    }
                };
                return self.outside(expr, what, instead);
            }
            Expr::Unsafe(_) => ("`unsafe`", "nothing here needs it: leave it out"),
            Expr::Async(_) => ("an `async` block", "write a plain block"),
            Expr::Const(_) => ("a `const` block", "write a plain block"),
            Expr::TryBlock(_) => ("a `try` block", "write a plain block"),
            Expr::Await(_) => {
                ("`.await`", "leave it out: the compiler inserts every synchronization that data need")
            }
            Expr::Try(_) => ("`?`", "state requirements with `assert!`"),
            Expr::Infer(_) => ("`_` as a value", "write `let _ = ..`"),
            _ => ("this expression", "use integers, bools, tuples, arrays, `if` and fns"),
        };
        self.outside(expr, what, instead);
    }

    /// Reports an item in a body that is no fn.
    pub(super) fn no_item(&mut self, item: &Item) {
        let (what, instead) = match item {
            Item::Const(_) | Item::Static(_) => ("a constant", "write `let`"),
            Item::Use(_) | Item::ExternCrate(_) => ("`use`", "nothing needs to be imported: leave it out"),
            Item::Macro(_) => ("a macro", "write a nested `fn`"),
            Item::Struct(_) | Item::Union(_) => ("a struct", "use tuples"),
            Item::Enum(_) => ("an enum", "use integers"),
            Item::Type(_) => ("a type alias", "write the type out"),
            Item::Mod(_) => {
                ("a module", "define the fns in the body, or beside it in a `#[collectives]` module")
            }
            Item::Trait(_) | Item::TraitAlias(_) => ("a trait", "write fns"),
            Item::Impl(_) => ("an `impl`", "write fns"),
            _ => ("this item", "only fns can be defined here"),
        };
        self.outside(item, what, instead);
    }

    /// Reports a pattern that is outside the language.
    pub(super) fn no_pattern(&mut self, pattern: &Pat) {
        let what = match pattern {
            Pat::Lit(_) | Pat::Const(_) | Pat::Range(_) | Pat::Path(_) => "a pattern of values",
            Pat::Or(_) => "`|` in a pattern",
            Pat::Reference(_) => "`&` in a pattern",
            Pat::Rest(_) => "`..` in a pattern",
            Pat::Slice(_) => "a pattern of arrays",
            Pat::Struct(_) | Pat::TupleStruct(_) => "a pattern of structs",
            Pat::Macro(_) => "a macro as a pattern",
            _ => "this pattern",
        };
        self.outside(pattern, what, "bind names, `_`, or tuples of them");
    }

    /// Reports a written type that is outside the language.
    pub(super) fn no_type(&mut self, ty: &Type) {
        let what = match ty {
            Type::Reference(_) | Type::Ptr(_) => "a reference".to_owned(),
            Type::Slice(_) => "an array without a length".to_owned(),
            Type::Never(_) => "the type `!`".to_owned(),
            Type::FnPtr(_) => "a fn as a value".to_owned(),
            Type::ImplTrait(_) | Type::TraitObject(_) => "a trait".to_owned(),
            Type::Macro(_) => "a macro as a type".to_owned(),
            Type::Path(_) => format!("the type `{}`", text(ty)),
            _ => "this type".to_owned(),
        };
        self.outside(ty, what, "the types are integers, `bool`, tuples and arrays");
    }
}
