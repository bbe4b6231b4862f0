//! Names that nothing here has: what was meant, as far as that can be told.

use super::lift::attributes;
use super::movement::unwrapped;
use super::outside::NO_ARITHMETIC;
use super::parser::{BodyParser, Finding, text};
use super::statement::buffer_root;
use quadrille_compiler::program::ids::Buffer;

/// Names under which authors look for synchronization, which the language adds by itself.
const SYNCHRONIZATIONS: [&str; 14] = [
    "sync",
    "synchronize",
    "barrier",
    "fence",
    "wait",
    "signal",
    "notify",
    "flush",
    "syncthreads",
    "__syncthreads",
    "sync_threads",
    "grid_sync",
    "threadfence",
    "__threadfence_system",
];

/// Names that libraries have for the movement of data.
const MOVEMENTS: [&str; 10] =
    ["send", "recv", "receive", "put", "get", "copy", "memcpy", "load", "store", "reduce_scatter"];

/// Methods that store their argument to what they are called on.
const STORES: [&str; 8] =
    ["copy_from", "clone_from", "copy_from_slice", "clone_from_slice", "assign", "set", "store", "write"];

/// Fns that libraries have for the combination of data: here the call's operator.
const OPERATORS: [&str; 12] = [
    "sum",
    "add",
    "plus",
    "prod",
    "product",
    "mul",
    "min",
    "minimum",
    "max",
    "maximum",
    "combine",
    "all_reduce",
];

/// Names of means.
const MEANS: [&str; 3] = ["avg", "average", "mean"];

/// Names that SPMD programs have for the rank that they run on.
const OWN_RANK: [&str; 6] = ["rank", "my_rank", "myrank", "rank_id", "me", "self"];

/// Names that other libraries have for the world size.
const WORLD_SIZE: [&str; 8] =
    ["N", "n", "world", "world_size", "WORLD_SIZE", "nranks", "num_ranks", "n_ranks"];

/// Returns true if a call of this name asks for synchronization.
pub(super) fn synchronizes(name: &str) -> bool {
    SYNCHRONIZATIONS.contains(&name)
}

/// The help for a synchronization that the author wrote.
pub(super) const NO_SYNCHRONIZATION: &str =
    "leave it out: the compiler inserts every synchronization that the data need";

impl BodyParser {
    /// Reports the name of a value that nothing has.
    pub(super) fn no_value(&mut self, path: &syn::ExprPath, name: &str) {
        let help = self.meant(name);
        let finding = self.syntax(path, format!("nothing here is called `{name}`"));
        if let Some(help) = help {
            finding.help(help);
        }
    }

    fn meant(&self, name: &str) -> Option<String> {
        if WORLD_SIZE.contains(&name) {
            return Some("the world size is called `RANKS`".to_owned());
        }
        if OWN_RANK.contains(&name) {
            let why = "the body moves the data of all ranks, seen from outside";
            return Some(format!(
                "{why}: write `for {} in 0..RANKS`",
                if name == "self" { "r" } else { name }
            ));
        }
        let known = self.known.as_ref();
        let mut names: Vec<&str> = self.scope.iter().rev().map(|binding| &*binding.name).collect();
        names.push("RANKS");
        names.extend(known.iter().flat_map(|known| known.params.iter().map(String::as_str)));
        if known.and_then(|known| known.kind).is_some_and(|kind| kind.rooted()) {
            names.push("ROOT");
        }
        if let Some(near) = nearest(name, names) {
            return Some(format!("write `{near}`"));
        }
        // By Rust's convention the name of a constant.
        let constant = name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase);
        constant.then(|| {
            "constants outside the fn are not seen in it: write a `let` in the body, or an option `params(..)`"
                .to_owned()
        })
    }

    /// Reports a call of a fn that is not there.
    pub(super) fn no_function(&mut self, call: &syn::ExprCall, name: &str) {
        if self.operator_on_chunks(&syn::Expr::Call(call.clone())) {
            return;
        }
        let last = name.rsplit("::").next().unwrap_or(name).trim();
        let near = nearest(name, self.function_scope.iter().rev().map(|(known, _)| &**known));
        let help = if name == "reduce" {
            let message = "`reduce(..)` combines chunks, and yields no number";
            self.syntax(call, message).help("write it on the right of an assignment to a chunk");
            return;
        } else if self.in_size {
            "the sizes of the attribute call no fns: write the number out, over `RANKS` and the parameters"
                .to_owned()
        } else if synchronizes(name) {
            NO_SYNCHRONIZATION.to_owned()
        } else if let Some(method) = ["min", "max"].into_iter().find(|method| last == *method) {
            format!("write it as a method: `a.{method}(b)`")
        } else if let Some(near) = near {
            format!("write `{near}`")
        } else if MOVEMENTS.contains(&name) {
            "chunks are moved by assignment: `output[r][c] = input[s][c];`".to_owned()
        } else {
            "fns are defined inside the collective, or beside it in a `#[collectives]` module".to_owned()
        };
        self.syntax(&call.func, format!("no fn here is called `{name}`")).help(help);
    }

    /// The chunks that a fn or method of this name, which the language does not have, is to combine.
    fn operator<'e>(
        &self,
        name: &str,
        operands: impl Iterator<Item = &'e syn::Expr> + Clone,
    ) -> Option<Vec<&'e syn::Expr>> {
        let defined = self.function_scope.iter().any(|(known, _)| known == name);
        let chunks = operands.clone().any(|operand| buffer_root(operand).is_some());
        (name != "reduce" && !defined && chunks).then(|| operands.collect())
    }

    /// Reports an operator on chunks that is a fn or a method; whether it was one.
    pub(super) fn operator_on_chunks(&mut self, term: &syn::Expr) -> bool {
        let (name, operands) = match term {
            syn::Expr::Call(call) => {
                let name = text(&call.func);
                (name.clone(), self.operator(&name, call.args.iter()))
            }
            syn::Expr::MethodCall(call) => {
                let name = call.method.to_string();
                let operands = std::iter::once(&*call.receiver).chain(&call.args);
                (name.clone(), self.operator(&name, operands))
            }
            _ => return false,
        };
        match operands {
            Some(operands) => self.no_operator(term, &name, &operands),
            None => return false,
        }
        true
    }

    fn no_operator(&mut self, at: &syn::Expr, name: &str, operands: &[&syn::Expr]) {
        if synchronizes(name) {
            return self.outside(at, format!("`{name}(..)`"), NO_SYNCHRONIZATION);
        }
        if let (true, syn::Expr::MethodCall(_), [to, from]) = (STORES.contains(&name), at, operands) {
            let instead = format!("write `{} = {};`", text(to), text(from));
            return self.outside(at, format!("`{name}(..)`"), &instead);
        }
        if MOVEMENTS.contains(&name) || STORES.contains(&name) {
            let instead = "chunks are moved by assignment: `output[r][c] = input[s][c];`";
            return self.outside(at, format!("`{name}(..)`"), instead);
        }
        let last = name.rsplit("::").next().unwrap_or(name).trim();
        if !OPERATORS.contains(&last) && !MEANS.contains(&last) {
            return self.outside(at, format!("`{name}(..)` on chunks"), NO_ARITHMETIC);
        }
        let instead = match operands {
            [one] => format!("reduce({})", text(one)),
            several => {
                let several: Vec<String> = several.iter().map(text).collect();
                format!("reduce([{}])", several.join(", "))
            }
        };
        let operator = if MEANS.contains(&last) {
            "call it with the operator avg"
        } else {
            "the call says by which operator"
        };
        let instead = format!("write `{instead}`; {operator}");
        self.outside(at, format!("`{name}(..)` on chunks"), &instead);
    }

    /// Returns true if an expression looks like a chunk of a buffer that does not exist.
    pub(super) fn like_a_chunk(&self, expr: &syn::Expr) -> bool {
        let base = |expr| match unwrapped(expr) {
            syn::Expr::Index(index) => Some(&*index.expr),
            _ => None,
        };
        let Some(syn::Expr::Path(path)) = base(expr).and_then(base).map(unwrapped) else { return false };
        attributes(expr).is_empty()
            && path.path.get_ident().is_some_and(|name| {
                let name = name.to_string();
                self.lookup(&name).is_none() && !self.hidden.contains(&name) && self.param(&name).is_none()
            })
    }

    /// Reports the name of a buffer that is not there.
    pub(super) fn no_buffer(&mut self, base: &syn::Expr, name: &str) -> Finding<'_> {
        let known = self.known.as_ref();
        let in_place = known.map(|known| known.in_place);
        let all = Buffer::ALL.into_iter().filter(|buffer| match buffer {
            Buffer::Scratch => known.is_none_or(|known| known.scratch),
            Buffer::Data => in_place != Some(false),
            Buffer::Input | Buffer::Output => in_place != Some(true),
        });
        let help = match (nearest(name, all.map(Buffer::name)), in_place) {
            (Some(near), _) => format!("write `{near}`"),
            (None, Some(true)) => "an `in_place` collective has one, `data`".to_owned(),
            (None, _) => "the buffers are `input` and `output`".to_owned(),
        };
        self.syntax(base, format!("no buffer is called `{name}`")).help(help)
    }
}

/// The longest name that is compared with others, in bytes: the comparison takes as long as the product of two lengths.
const LONGEST_COMPARED: usize = 128;

/// The name that is most like `name`, if it is so like that it was meant.
pub(super) fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let lower = name.to_lowercase();
    // A third of the letters may differ, but of a short name none.
    let most = name.chars().count() / 3;
    let short = |name: &str| name.len() <= LONGEST_COMPARED;
    names
        .into_iter()
        .filter(|known| short(name) && short(known))
        .map(|known| (strsim::osa_distance(&lower, &known.to_lowercase()), known))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}
