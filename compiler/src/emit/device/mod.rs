//! The device code that does not depend on the program, and the functions of it that the text calls.

use crate::kernel::Kernel;
use std::fmt::{self, Display};

/// A file of device code.
pub(super) struct DeviceFile {
    /// The file's name.
    pub(super) name: &'static str,
    /// The file's text.
    pub(super) text: &'static str,
    /// Returns true if a kernel needs it.
    pub(super) needed: fn(&Kernel) -> bool,
}

const fn file(name: &'static str, text: &'static str, needed: fn(&Kernel) -> bool) -> DeviceFile {
    DeviceFile { name, text, needed }
}

/// The device code that kernels begin with, in order.
pub(super) const FILES: [DeviceFile; 8] = [
    file("abi.cuh", include_str!("abi.cuh"), |_| true),
    file("sync.cuh", include_str!("sync.cuh"), |_| true),
    file("call.cuh", include_str!("call.cuh"), |_| true),
    file("element.cuh", include_str!("element.cuh"), |_| true),
    file("move.cuh", include_str!("move.cuh"), |_| true),
    file("fifo.cuh", include_str!("fifo.cuh"), Kernel::has_fifos),
    file("lines.cuh", include_str!("lines.cuh"), Kernel::has_lines),
    file("switch.cuh", include_str!("switch.cuh"), Kernel::has_multicast),
];

/// A device function: how many template arguments calls name (others are deduced), how many arguments they pass, and how
/// many more have default values. A test compares this with the files.
pub(super) struct DeviceFunction<const TEMPLATE: usize, const ARGUMENTS: usize, const OPTIONAL: usize> {
    name: &'static str,
}

impl<const T: usize, const A: usize, const O: usize> DeviceFunction<T, A, O> {
    /// A call of the function.
    pub(super) fn call(&self, template: [&dyn Display; T], arguments: [&dyn Display; A]) -> DeviceCall<O> {
        let texts = |list: &[&dyn Display]| list.iter().map(ToString::to_string).collect();
        DeviceCall { name: self.name, template: texts(&template), arguments: texts(&arguments), apart: 0 }
    }
}

/// An expression: a call of a device function, to which `OPTIONAL` arguments may be added.
pub(super) struct DeviceCall<const OPTIONAL: usize> {
    name: &'static str,
    template: Vec<String>,
    arguments: Vec<String>,
    /// The first of the arguments stand on lines of their own.
    apart: usize,
}

impl<const O: usize> DeviceCall<O> {
    /// Puts the first `apart` arguments on lines of their own, and the others on one.
    pub(super) fn apart(mut self, apart: usize) -> Self {
        self.apart = apart;
        self
    }
}

impl DeviceCall<1> {
    /// Adds the optional argument, if there is one.
    pub(super) fn and(mut self, argument: Option<&str>) -> Self {
        self.arguments.extend(argument.map(str::to_owned));
        self
    }
}

impl<const O: usize> Display for DeviceCall<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if !self.template.is_empty() {
            write!(f, "<{}>", self.template.join(", "))?;
        }
        let line = "\n    ";
        f.write_str(if self.apart > 0 { "(\n    " } else { "(" })?;
        for (i, argument) in self.arguments.iter().enumerate() {
            match i {
                0 => {}
                _ if i <= self.apart => write!(f, ",{line}")?,
                _ => f.write_str(", ")?,
            }
            f.write_str(argument)?;
        }
        f.write_str(")")
    }
}

macro_rules! device_functions {
    ($($constant:ident = $name:literal<$template:literal>($arguments:literal $(+ $optional:literal)?);)*) => {
        $(pub(super) const $constant: DeviceFunction<$template, $arguments, { 0 $(+ $optional)? }> =
            DeviceFunction { name: $name };)*

        /// Name, template arguments, arguments and optional arguments of each.
        #[cfg(test)]
        const FUNCTIONS: &[(&str, usize, usize, usize)] =
            &[$(($name, $template, $arguments, 0 $(+ $optional)?)),*];
    };
}

device_functions! {
    ALONE = "alone"<0>(1);
    AMONG = "among"<1>(1);
    CHUNK_AT = "chunks.at"<0>(2);
    CHUNK_SLOT = "chunks.slot"<0>(2);
    CHUNK_LENGTH = "chunks.length"<0>(2);
    TILES = "chunks.tiles"<0>(0);
    PIECE_AT = "chunks.piece_at"<0>(3);
    PIECE_SLOT = "chunks.piece_slot"<0>(3);
    PIECE = "chunks.piece"<0>(2);
    INDEX_FROM = "index_from"<0>(1);
    OPEN_START_TO = "open_start_to"<1>(6);
    OPEN_START_FROM = "open_start_from"<1>(6);
    OPEN_DATA_TO = "open_data_to"<1>(6);
    OPEN_DATA_FROM = "open_data_from"<1>(6);
    OPEN_MESSAGE_TO = "open_message_to"<1>(6);
    OPEN_MESSAGE_FROM = "open_message_from"<1>(6);
    OPEN_CREDIT_TO = "open_credit_to"<3>(6);
    OPEN_CREDIT_FROM = "open_credit_from"<3>(6);
    CLOSE = "close"<0>(2 + 1);
    POLL_START = "poll_start"<0>(7);
    POLL_DATA = "poll_data"<0>(8 + 1);
    SIGNAL_START = "signal_start"<0>(5);
    SIGNAL_DATA = "signal_data"<0>(5 + 1);
    BLOCK_SYNC = "block_sync"<0>(0);
    LEAVE = "leave"<0>(1);
    GIVE_UP = "give_up"<0>(4);
    NAME_CALL = "name_call"<1>(2);
    ANOTHER_CALL = "another_call"<1>(5);
    MESSAGE = "message"<1>(3);
    MESSAGE_SLOT = "slot"<0>(3);
    MOVE = "move"<4>(3);
    MOVE_SCALED = "move_scaled"<4>(4);
    MOVE_LL = "move_ll"<6>(5);
    MOVE_LL128 = "move_ll128"<6>(5);
    ALIAS_FENCE = "alias_fence"<0>(0);
    MOVE_SWITCH = "move_switch"<6>(6);
}

#[cfg(test)]
mod tests {
    use super::{CLOSE, FILES, FUNCTIONS, MOVE};

    /// Splits at the commas that no bracket encloses, and returns the rest behind the bracket that closes the list.
    fn list(text: &str) -> (Vec<&str>, &str) {
        let (mut items, mut depth, mut from) = (Vec::new(), 0, 0);
        for (i, c) in text.char_indices() {
            match c {
                '(' | '<' => depth += 1,
                ',' if depth == 0 => {
                    items.push(&text[from..i]);
                    from = i + 1;
                }
                ')' | '>' if depth == 0 => {
                    items.push(&text[from..i]);
                    items.retain(|item| !item.trim().is_empty());
                    return (items, &text[i..]);
                }
                ')' | '>' => depth -= 1,
                _ => {}
            }
        }
        (items, "")
    }

    /// Template parameters, parameters and default values of each definition of `name`.
    fn definitions(name: &str) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for file in FILES {
            for (at, _) in file.text.match_indices(&format!(" {name}(")) {
                let before = &file.text[..at];
                let head = &before[before.rfind([';', '{', '}']).unwrap_or(0)..];
                if !head.contains("__device__") {
                    continue;
                }
                let template = head.rfind("template <").map_or(0, |at| list(&head[at + 10..]).0.len());
                let (parameters, _) = list(&file.text[at + name.len() + 2..]);
                let defaults = parameters.iter().filter(|parameter| parameter.contains('=')).count();
                found.push((template, parameters.len(), defaults));
            }
        }
        found
    }

    #[test]
    fn functions_are_defined_as_they_are_called() {
        for &(name, template, arguments, optional) in FUNCTIONS {
            let name = name.trim_start_matches("chunks.");
            let found = definitions(name);
            let fits = |&(names, parameters, defaults): &(usize, usize, usize)| {
                names >= template && parameters == arguments + optional && defaults == optional
            };
            assert!(
                found.iter().any(fits),
                "{name}<{template}>({arguments} + {optional}), defined: {found:?}"
            );
        }
        assert!(definitions("no_such_function").is_empty());
        assert_eq!(definitions("close"), [(0, 3, 1)]);
    }

    #[test]
    fn calls_are_laid_out() {
        assert_eq!(CLOSE.call([], [&"links", &2]).and(Some("TILE")).to_string(), "close(links, 2, TILE)");
        let call = MOVE.call([&"T", &"Op", &1, &1], [&"{a}", &"{b}", &"n"]).apart(2);
        assert_eq!(call.to_string(), "move<T, Op, 1, 1>(\n    {a},\n    {b},\n    n)");
    }
}
