//! Literal numbers in attributes: world sizes, values of parameters.

use super::parser::{BodyParser, RESERVED};
use quadrille_compiler::body::Param;
use quadrille_compiler::schedule::domain::LARGEST_WORLD;
use syn::{Expr, Lit, MetaList, RangeLimits, UnOp};

/// The most world sizes one attribute may list: each is evaluated at every build.
const SIZES_LIMIT: i64 = 256;

/// The most combinations of parameters' values, each of which is evaluated for every world size at every build.
const COMBINATIONS_LIMIT: usize = 64;

/// A literal number, perhaps with a sign.
pub(super) fn integer(value: &Expr) -> Option<i64> {
    match value {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) if int.suffix().is_empty() => int.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => integer(&unary.expr)?.checked_neg(),
        Expr::Group(group) => integer(&group.expr),
        _ => None,
    }
}

/// Numbers that an attribute lists.
struct Listed<'a> {
    /// The option, as messages name it.
    option: &'a str,
    /// The words for one of them and for several.
    one: &'a str,
    many: &'a str,
    help: &'a str,
    limit: i64,
    /// The note on a list or range that is longer.
    too_many: String,
}

impl Listed<'_> {
    /// The numbers of `[2, 4, 8]`, `2..=8` or `2..9`, in order; `number` reads one.
    fn read(
        &self,
        parser: &mut BodyParser,
        value: &Expr,
        number: impl Fn(&mut BodyParser, &Expr) -> Option<i64>,
    ) -> Vec<i64> {
        let Listed { option, one, many, help, .. } = self;
        let mut numbers = Vec::new();
        match value {
            Expr::Array(array) => {
                for item in &array.elems {
                    let Some(found) = number(parser, item) else { continue };
                    if numbers.contains(&found) {
                        parser.syntax(item, format!("{one} {found} is listed twice"));
                    }
                    numbers.push(found);
                }
                if array.elems.is_empty() {
                    parser.syntax(value, format!("`{option}` lists no {one}")).help(*help);
                }
            }
            Expr::Range(range) => {
                let (Some(start), Some(end)) = (&range.start, &range.end) else {
                    parser.syntax(value, format!("a range of {many} has two ends")).help(*help);
                    return numbers;
                };
                let (Some(start), Some(end)) = (number(parser, start), number(parser, end)) else {
                    return numbers;
                };
                let end = end.saturating_add(i64::from(matches!(range.limits, RangeLimits::Closed(_))));
                let len = end.saturating_sub(start);
                if len <= 0 {
                    parser.syntax(value, format!("`{option}` lists no {one}")).help(*help);
                } else if len > self.limit {
                    parser
                        .syntax(value, format!("`{option}` lists {len} {many}"))
                        .note(self.too_many.as_str())
                        .help("list some of them; the others are verified when they are asked for");
                } else {
                    numbers.extend(start..end);
                }
            }
            _ => {
                parser.syntax(value, format!("`{option}` is a list or a range of {many}")).help(*help);
            }
        }
        numbers
    }
}

/// The world sizes of `ranks = ..`, ascending.
pub(super) fn sizes(parser: &mut BodyParser, value: &Expr) -> Vec<u32> {
    let listed = Listed {
        option: "ranks",
        one: "world size",
        many: "world sizes",
        help: "write a list as `[2, 4, 8]` or a range as `2..=8`",
        limit: SIZES_LIMIT,
        too_many: format!("each is verified at every build; at most {SIZES_LIMIT} can be listed"),
    };
    let numbers = listed.read(parser, value, |parser, item| match integer(item) {
        Some(0) => {
            parser.syntax(item, "a world has at least one rank");
            None
        }
        Some(size) if (1..=LARGEST_WORLD.into()).contains(&size) => Some(size),
        _ => {
            let message = format!("a world size is a whole number from 1 to {LARGEST_WORLD}");
            let finding = parser.syntax(item, message);
            if matches!(item, syn::Expr::Path(_)) {
                finding.help(
                    "write the sizes that every build proves as numbers, as in `ranks = [2, 4, 8]`; the body knows the world \
                     size at hand as `RANKS`, and other sizes are proved when they are used",
                );
            }
            None
        }
    });
    let mut sizes: Vec<u32> = numbers.into_iter().filter_map(|size| u32::try_from(size).ok()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The parameters of `params(..)`.
pub(super) fn params(parser: &mut BodyParser, list: &MetaList) -> Vec<Param> {
    const HELP: &str = "write `params(k = 2..=4, j = [1, 2])`";
    let Some(pairs) = parser.pairs(list) else { return Vec::new() };
    if pairs.is_empty() {
        parser.syntax(list, "`params` names no parameter").help(HELP);
    }
    let mut params: Vec<Param> = Vec::new();
    for pair in &pairs {
        let Some(name) = pair.path.get_ident().map(ToString::to_string) else {
            parser.syntax(&pair.path, "a parameter has a plain name").help(HELP);
            continue;
        };
        if RESERVED.contains(&name.as_str()) {
            parser
                .syntax(&pair.path, format!("`{name}` is a name of the language; no parameter can have it"))
                .help("choose another name");
            continue;
        }
        if params.iter().any(|param| param.name == name) {
            parser.syntax(&pair.path, format!("two parameters are called `{name}`"));
            continue;
        }
        let listed = Listed {
            option: &name,
            one: "value",
            many: "values",
            help: HELP,
            limit: COMBINATIONS_LIMIT as i64,
            too_many: format!("each is verified at every build; at most {COMBINATIONS_LIMIT} can be listed"),
        };
        let mut values = listed.read(parser, &pair.value, |parser, item| {
            let number = integer(item);
            if number.is_none() {
                parser.syntax(item, "the value of a parameter is a whole number");
            }
            number
        });
        if values.is_empty() {
            // Reported; the name is known all the same.
            values.push(0);
        }
        params.push(Param { value: values[0], name, values });
    }
    let combinations = params.iter().fold(1_usize, |all, param| all.saturating_mul(param.values.len()));
    if combinations > COMBINATIONS_LIMIT {
        let message = format!("the values of the parameters have {combinations} combinations");
        parser
            .syntax(list, message)
            .note(format!(
                "each is verified at every build, for every world size; at most {COMBINATIONS_LIMIT} can be listed"
            ))
            .help("list fewer values; the others are verified when they are asked for");
    }
    params
}
