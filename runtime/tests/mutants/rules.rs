//! How a kernel's text is mutated: by rules on the text, so that what is added to the device code is mutated, too. Each
//! mutant drops or weakens one thing that orders.

use super::text::{Call, Functions, Role, calls, words};
use std::ops::Range;

/// A text with one change.
pub(super) struct Mutant {
    /// What was done, as a table's reader needs it.
    pub(super) rule: String,
    /// The line of the change, from 1.
    pub(super) line: u32,
    /// That line as it was.
    pub(super) before: String,
    /// The device function that it stands in; `None` in the kernel.
    pub(super) function: Option<String>,
    /// What the kernel calls before and after it.
    pub(super) neighbours: [String; 2],
    /// The whole mutated text.
    pub(super) text: String,
}

/// Words of an instruction that order, and what each weakens to.
const ORDERS: [(&str, &[&str]); 5] = [
    ("acquire", &["relaxed"]),
    ("release", &["relaxed"]),
    ("acq_rel", &["acquire", "release", "relaxed"]),
    ("sc", &["acq_rel"]),
    ("mmio", &["relaxed"]),
];

/// Scopes, and the narrower ones.
const SCOPES: [(&str, &[&str]); 3] = [("sys", &["gpu", "cta"]), ("cluster", &["cta"]), ("gpu", &["cta"])];

/// Instructions that do nothing but order: dropped whole.
const ORDERING: [&str; 5] = ["fence", "membar", "bar", "barrier", "mbarrier"];

/// CUDA's own functions that do nothing but order.
const INTRINSICS: [&str; 8] = [
    "__syncthreads",
    "__syncthreads_or",
    "__syncthreads_and",
    "__syncthreads_count",
    "__syncwarp",
    "__threadfence",
    "__threadfence_block",
    "__threadfence_system",
];

/// Every mutant of a text, by place. The first `device_bytes` bytes do not depend on the program.
pub(super) fn mutants(text: &str, device_bytes: usize) -> Vec<Mutant> {
    let functions = Functions::of(&text[..device_bytes]);
    let mut all = Mutants { text, functions: &functions, found: Vec::new() };
    instructions(&mut all);
    intrinsics(&mut all);
    comparisons(&mut all);
    addends(&mut all);
    flags(&mut all);
    steps(&mut all, device_bytes);
    all.found.sort_by_key(|mutant| mutant.line);
    all.found
}

struct Mutants<'a> {
    text: &'a str,
    functions: &'a Functions,
    found: Vec<Mutant>,
}

impl Mutants<'_> {
    fn add(&mut self, rule: impl Into<String>, range: Range<usize>, with: &str) {
        let line = self.text[..range.start].matches('\n').count();
        let before = self.text.lines().nth(line).unwrap_or_default().trim().to_owned();
        let text = [&self.text[..range.start], with, &self.text[range.end..]].concat();
        let function = self.functions.around(range.start).map(|function| function.name.clone());
        let is_statement = |call: &Call<'_>| call.is_statement(self.text);
        let around = |part: Option<Call<'_>>| part.map_or(String::new(), |call| call.name.to_owned());
        let before_it =
            calls(self.text).filter(is_statement).take_while(|call| call.range.start < range.start);
        let after_it = calls(self.text).filter(is_statement).find(|call| call.range.start >= range.end);
        let neighbours = [around(before_it.last()), around(after_it)];
        let rule = rule.into();
        self.found.push(Mutant { rule, line: line as u32 + 1, before, function, neighbours, text });
    }
}

/// Acquire and release to relaxed, a scope to a narrower one, a strong access to a weak one; fences go.
fn instructions(all: &mut Mutants<'_>) {
    let text = all.text;
    let mut from = 0;
    // String literals of asm; none of them holds an escaped quote.
    while let Some(open) = text[from..].find('"').map(|at| from + at) {
        let Some(close) = text[open + 1..].find('"').map(|at| open + 1 + at) else { break };
        from = close + 1;
        for instruction in text[open + 1..close].split_inclusive(';') {
            let start = instruction.as_ptr() as usize - text.as_ptr() as usize;
            let Some(name) = words(instruction).next() else { continue };
            let at = |part: Range<usize>| start + part.start..start + part.end;
            let parts: Vec<(usize, &str)> = instruction[name.clone()]
                .split('.')
                .scan(name.start, |next, part| {
                    let begin = *next;
                    *next += part.len() + 1;
                    Some((begin, part))
                })
                .collect();
            if parts.first().is_some_and(|(_, first)| ORDERING.contains(first)) {
                all.add("drop the instruction", start..start + instruction.len(), "");
            }
            let mut strong: Vec<(usize, &str)> = Vec::new();
            for &(begin, part) in &parts {
                for (word, weaker) in ORDERS.iter().chain(&SCOPES) {
                    if part == *word {
                        strong.push((begin, part));
                        for weaker in *weaker {
                            all.add(format!(".{word} -> .{weaker}"), at(begin..begin + part.len()), weaker);
                        }
                    }
                }
                if ["relaxed", "volatile"].contains(&part) {
                    strong.push((begin, part));
                }
            }
            // Order and scope stand side by side.
            if let (Some((first, _)), Some((last, word))) = (strong.first(), strong.last()) {
                let access = parts.first().is_some_and(|(_, name)| ["ld", "st"].contains(name));
                if access {
                    all.add("to a weak access", at(first - 1..last + word.len()), "");
                }
            }
        }
    }
}

/// Barriers and fences of CUDA's own.
fn intrinsics(all: &mut Mutants<'_>) {
    for call in calls(all.text).filter(|call| INTRINSICS.contains(&call.name)) {
        let with = match call.arguments.len() {
            1 => format!("({})", call.arguments[0]),
            _ => "((void)0)".to_owned(),
        };
        all.add(format!("drop {}", call.name), call.range.clone(), &with);
    }
}

/// A count that may have wrapped, compared as a plain number: `(a - b) .. < 0` to `a < b`.
fn comparisons(all: &mut Mutants<'_>) {
    const CAST: &str = "static_cast<long long>(";
    let text = all.text;
    for (at, _) in text.match_indices(CAST) {
        let inner = at + CAST.len();
        let Some(end) = closing(text, inner) else { continue };
        if !text[end + 1..].starts_with(" < 0") {
            continue;
        }
        let difference = text[inner..end].split(')').next().unwrap_or_default().trim_start_matches('(');
        if let Some((left, right)) = difference.split_once(" - ") {
            let with = format!("{left} < {right}");
            all.add("compare by < without regard to the wrap", at..end + 1 + " < 0".len(), &with);
        }
    }
}

/// What is added to a count where it is known from: a signal, an expectation, or the next call's base off.
fn addends(all: &mut Mutants<'_>) {
    let text = all.text;
    for count in [".base + ", ".before(tile) + ", ".before(tiles) + "] {
        for (at, _) in text.match_indices(count) {
            let begin = at + count.len() - " + ".len();
            let end = begin + text[begin..].find([')', ';', ',']).unwrap_or(0);
            // A cast of what is added ends with it.
            let end = if text[begin..end].contains("_cast<") { end + 1 } else { end };
            all.add(format!("drop `{}`", text[begin..end].trim()), begin..end, "");
        }
    }
}

/// Flags in the data: one that is not waited for, and lines that keep one that comes again.
fn flags(all: &mut Mutants<'_>) {
    let text = all.text;
    for (flag, with, rule) in [
        ("!= end.flag", "== 0x123456789abcull", "do not wait for a flag"),
        ("!= first.flag", "== 0x123456789abcull", "do not wait for a flag"),
        ("fills(end.flag)", "false", "leave lines with old flags"),
        ("fills(ends.end[i].flag)", "false", "leave lines with old flags"),
    ] {
        for (at, _) in text.match_indices(flag) {
            all.add(rule, at..at + flag.len(), with);
        }
    }
}

/// What the kernel calls: signals, waits, barriers, and what keeps counts between calls.
fn steps(all: &mut Mutants<'_>, device_bytes: usize) {
    let text = all.text;
    let found: Vec<(Call<'_>, Role)> = calls(text)
        .filter(|call| call.range.start >= device_bytes)
        .filter_map(|call| Some((all.functions.role(call.name)?, call)).map(|(role, call)| (call, role)))
        .collect();
    for (i, (call, role)) in found.iter().enumerate() {
        let value = match call.arguments.len() {
            // What waits for others passes on what it was given.
            1 if *role == Role::Barrier => format!("({})", call.arguments[0]),
            _ if call.is_statement(text) => "((void)0)".to_owned(),
            _ => "false".to_owned(),
        };
        all.add(format!("drop {}", call.name), call.range.clone(), &value);
        if *role == Role::Signal || *role == Role::Wait {
            for (argument, name) in call.arguments.iter().zip(all.functions.parameters(call.name)) {
                let Ok(number) = argument.parse::<i64>() else { continue };
                let at = argument.as_ptr() as usize - text.as_ptr() as usize;
                let range = at..at + argument.len();
                match (name, role) {
                    ("value", Role::Signal) => {
                        all.add(format!("{}: one more", call.name), range.clone(), &(number + 1).to_string());
                        all.add(format!("{}: one less", call.name), range, &(number - 1).to_string());
                    }
                    ("value", _) => {
                        all.add(format!("{}: one less", call.name), range, &(number - 1).to_string())
                    }
                    ("count", _) => {
                        all.add(
                            format!("{}: the last link left out", call.name),
                            range,
                            &(number - 1).to_string(),
                        );
                    }
                    _ => {}
                }
            }
        }
        // The signal before the barrier that it has to follow.
        if *role == Role::Signal
            && let Some((before, Role::Barrier)) = i.checked_sub(1).map(|i| &found[i])
            && text[before.range.end..call.range.start].trim() == ";"
        {
            let (first, second) = (&text[before.range.clone()], &text[call.range.clone()]);
            let swapped = format!("{second};\n{first}");
            all.add(
                format!("{} before {}", call.name, before.name),
                before.range.start..call.range.end,
                &swapped,
            );
        }
    }
}

/// The bracket that closes one opened before `from`.
pub(super) fn closing(text: &str, from: usize) -> Option<usize> {
    let mut depth = 1;
    for (at, c) in text[from..].char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(from + at);
        }
    }
    None
}
