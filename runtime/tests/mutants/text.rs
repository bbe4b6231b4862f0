//! As much of CUDA text as the rules need: words, calls, and the device functions with what they do for order.

use super::rules::closing;
use std::ops::Range;

/// What a function of the device code does for the order of things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Publishes: has a release.
    Signal,
    /// Waits for others: has an acquire.
    Wait,
    /// Joins the threads of a block or a warp.
    Barrier,
    /// Keeps what links count.
    Count,
}

/// A call of a function.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    /// From the name to the closing bracket.
    pub(super) range: Range<usize>,
    pub(super) arguments: Vec<&'a str>,
}

/// A function that is defined in the text.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    parameters: Vec<String>,
    /// From the name to the end of the body.
    range: Range<usize>,
    role: Option<Role>,
}

/// The functions of device code.
#[derive(Clone, Debug)]
pub(super) struct Functions(Vec<Function>);

/// Words, with the dots of an instruction's name in them.
pub(super) fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(part)?;
        let end = text[start..].find(|c| !part(c)).map_or(text.len(), |at| start + at);
        from = end;
        Some(start..end)
    })
}

/// Calls and definitions alike: a name, template arguments perhaps, and brackets.
pub(super) fn calls(text: &str) -> impl Iterator<Item = Call<'_>> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices('(').filter_map(move |(open, _)| {
        let mut head = text[..open].trim_end();
        if head.ends_with('>') {
            head = &head[..head.rfind('<')?];
        }
        let begin = head.rfind(|c| !word(c)).map_or(0, |at| at + 1);
        let name = &head[begin..];
        if name.is_empty() || in_comment(text, begin) {
            return None;
        }
        let close = closing(text, open + 1)?;
        Some(Call { name, range: begin..close + 1, arguments: arguments(&text[open + 1..close]) })
    })
}

fn in_comment(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[line..at].contains("//")
}

/// What stands between commas that no bracket encloses.
fn arguments(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    let last = list[from..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

impl Call<'_> {
    /// Whether nothing is done with what it gives.
    pub(super) fn is_statement(&self, text: &str) -> bool {
        let mut before = text[..self.range.start].trim_end();
        // A comment stands between.
        while let Some(line) =
            before.rfind('\n').filter(|&line| before[line..].trim_start().starts_with("//"))
        {
            before = before[..line].trim_end();
        }
        before.ends_with([';', '{', '}']) && text[self.range.end..].starts_with(';')
    }
}

impl Functions {
    pub(super) fn of(text: &str) -> Functions {
        let mut list: Vec<Function> = Vec::new();
        for call in calls(text) {
            // A definition: a body follows, and a type stands before.
            let after = text[call.range.end..].trim_start();
            let after = after.strip_prefix("const").unwrap_or(after).trim_start();
            let line = text[..call.range.start].rfind('\n').map_or(0, |newline| newline + 1);
            let device = text[line..call.range.start].contains("__device__");
            if !after.starts_with('{') || !device {
                continue;
            }
            let body = text.len() - after.len();
            let Some(end) = closing(text, body + 1) else { continue };
            let name_of = |parameter: &&str| {
                let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
                parameter.rsplit(word).next().unwrap_or_default().to_owned()
            };
            let parameters = call.arguments.iter().map(name_of).collect();
            let role = role(&text[body..end], &call.arguments);
            list.push(Function {
                name: call.name.to_owned(),
                parameters,
                range: call.range.start..end + 1,
                role,
            });
        }
        // What a function calls is done by it, too.
        loop {
            let known: Vec<(String, Role)> = list
                .iter()
                .filter_map(|f| Some((f.name.clone(), f.role.filter(|role| *role != Role::Count)?)))
                .collect();
            let mut changed = false;
            for function in list.iter_mut().filter(|f| f.role.is_none_or(|role| role == Role::Count)) {
                let body = &text[function.range.clone()];
                let called =
                    calls(body).skip(1).find_map(|call| known.iter().find(|(name, _)| *name == call.name));
                if let Some(&(_, role)) = called {
                    function.role = Some(role);
                    changed = true;
                }
            }
            if !changed {
                return Functions(list);
            }
        }
    }

    /// What a function does for order; `None` where that is nothing, or it is not known.
    pub(super) fn role(&self, name: &str) -> Option<Role> {
        self.0.iter().find(|function| function.name == name)?.role
    }

    /// The names of a function's parameters.
    pub(super) fn parameters(&self, name: &str) -> impl Iterator<Item = &str> {
        let function = self.0.iter().find(|function| function.name == name);
        function.into_iter().flat_map(|function| function.parameters.iter().map(String::as_str))
    }

    /// The function that is defined around a place.
    pub(super) fn around(&self, at: usize) -> Option<&Function> {
        self.0.iter().find(|function| function.range.contains(&at))
    }
}

fn role(body: &str, parameters: &[&str]) -> Option<Role> {
    let has = |word: &str| body.contains(word);
    if has(".acquire") {
        Some(Role::Wait)
    } else if has(".release") {
        Some(Role::Signal)
    } else if has("__sync") {
        Some(Role::Barrier)
    } else if parameters.iter().any(|parameter| parameter.contains("Link* ")) {
        Some(Role::Count)
    } else {
        None
    }
}
