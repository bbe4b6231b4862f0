//! `#[schedule(..)]`: how data is moved, never what.

use super::names::nearest;
use super::numbers::integer;
use super::parser::{BodyParser, text};
use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::options::size::ByteSize;
use quadrille_compiler::options::{self, Given, Protocol, ScheduleOptions, StatementOptions, Transport};
use std::fmt;
use syn::{Attribute, Expr, Lit, Meta, MetaNameValue};

/// The keys of `#[schedule(..)]` on the fn.
const KEYS: &str = "protocol, transport, instances, blocks, threads, slots, tile, unroll, from, up_to";

impl BodyParser {
    /// The `#[schedule(..)]` attributes of a collective's fn, which together serve every message size once.
    pub(super) fn schedules(&mut self, attributes: &[&Attribute]) -> Vec<ScheduleOptions> {
        let before = self.findings.len();
        let schedules: Vec<_> =
            attributes.iter().filter_map(|attribute| self.schedule(attribute, true)).collect();
        // Sizes that could not be read would seem to leave holes.
        if self.findings.len() == before && !schedules.is_empty() {
            self.findings.extend(options::sizes(&schedules).err().unwrap_or_default());
        }
        schedules
    }

    /// Reads `#[schedule(..)]` of a statement or block.
    pub(super) fn how(&mut self, attribute: &Attribute) -> StatementOptions {
        self.schedule(attribute, false).unwrap_or_default().how
    }

    fn schedule(&mut self, attribute: &Attribute, on_fn: bool) -> Option<ScheduleOptions> {
        let help = if on_fn {
            "write `#[schedule(protocol = Simple, blocks = 16)]`"
        } else {
            "write `#[schedule(transport = get)]`"
        };
        let Meta::List(list) = &attribute.meta else {
            self.syntax(attribute, "`#[schedule(..)]` says how, in parentheses").help(help);
            return None;
        };
        let pairs = self.pairs(list)?;
        if pairs.is_empty() {
            self.syntax(attribute, "`#[schedule()]` says nothing").help(help);
        }
        let loc = self.places.of(attribute);
        let mut read = ScheduleOptions { loc: Some(loc), ..ScheduleOptions::default() };
        let mut names = Vec::new();
        for pair in &pairs {
            let name = text(&pair.path);
            if names.contains(&name) {
                self.syntax(pair, format!("`{name}` stands twice"));
                continue;
            }
            self.option(pair, &name, on_fn, &mut read);
            names.push(name);
        }
        Some(read)
    }

    fn option(&mut self, pair: &MetaNameValue, name: &str, on_fn: bool, read: &mut ScheduleOptions) {
        if !on_fn && name != "protocol" && name != "transport" {
            if KEYS.split(", ").any(|key| key == name) {
                self.syntax(pair, format!("`{name}` is of a whole collective, not of a statement"))
                    .help("put it into a `#[schedule(..)]` on the fn");
            } else {
                self.unknown(pair, name, "protocol, transport");
            }
            return;
        }
        let loc = self.places.of(pair);
        match name {
            "protocol" => read.how.protocol = self.named(pair, loc, &Protocol::ALL),
            "transport" => read.how.transport = self.named(pair, loc, &Transport::ALL),
            "instances" => read.instances = self.count(pair, loc, name, 1, u32::MAX, 1),
            "blocks" => read.blocks = self.count(pair, loc, name, 1, 64, 1),
            "threads" => read.threads = self.count(pair, loc, name, 32, 1024, 32),
            "slots" => read.slots = self.count(pair, loc, name, 1, u32::MAX, 1),
            "unroll" => read.unroll = self.count(pair, loc, name, 1, u32::MAX, 1),
            "tile" => read.tile = self.bytes(pair, loc, name, 1),
            "from" => read.from = self.bytes(pair, loc, name, 0),
            "up_to" => read.up_to = self.bytes(pair, loc, name, 0),
            _ => self.unknown(pair, name, KEYS),
        }
    }

    fn unknown(&mut self, pair: &MetaNameValue, name: &str, known: &str) {
        let near = nearest(name, known.split(", "));
        let help = near
            .map_or_else(|| format!("it says {known}"), |near| format!("write `{near}`; it says {known}"));
        self.syntax(pair, format!("`{name}` is nothing that `#[schedule(..)]` says")).help(help);
    }

    /// One of the named values of an option.
    fn named<T: Copy + fmt::Display>(
        &mut self,
        pair: &MetaNameValue,
        loc: Loc,
        all: &[T],
    ) -> Option<Given<T>> {
        let (key, written) = (text(&pair.path), text(&pair.value));
        if let Some(&value) = all.iter().find(|known| known.to_string() == written) {
            return Some(Given { value, loc });
        }
        let names: Vec<String> = all.iter().map(T::to_string).collect();
        let finding = self
            .syntax(&pair.value, format!("`{written}` is no {key}"))
            .note(format!("there are {}", names.join(", ")));
        let bare = written.trim_matches('"');
        if let Some(name) = names.iter().find(|name| name.eq_ignore_ascii_case(bare)) {
            finding.help(format!("write `{key} = {name}`"));
        }
        None
    }

    /// A number from `least` to `most` that is a multiple of `step`.
    fn count(
        &mut self,
        pair: &MetaNameValue,
        loc: Loc,
        name: &str,
        least: u32,
        most: u32,
        step: u32,
    ) -> Option<Given<u32>> {
        let number = integer(&pair.value).and_then(|number| u32::try_from(number).ok());
        let value = number.filter(|number| (least..=most).contains(number) && number.is_multiple_of(step));
        if value.is_none() {
            let what = if step == 1 { "a whole number".to_owned() } else { format!("a multiple of {step}") };
            let range = match most {
                u32::MAX => format!(", at least {least}"),
                _ => format!(" from {least} to {most}"),
            };
            self.syntax(&pair.value, format!("`{name}` is {what}{range}"));
        }
        value.map(|value| Given { value, loc })
    }

    /// A size in bytes, as a text with a unit or as a number.
    fn bytes(&mut self, pair: &MetaNameValue, loc: Loc, name: &str, least: u64) -> Option<Given<u64>> {
        let text = match &pair.value {
            Expr::Lit(lit) => match &lit.lit {
                Lit::Str(text) => Some(text.value()),
                Lit::Int(number) if number.suffix().is_empty() => Some(number.base10_digits().to_owned()),
                _ => None,
            },
            _ => None,
        };
        let read = text.as_deref().map(str::parse::<ByteSize>);
        let reason = match read {
            Some(Ok(ByteSize(value))) if value >= least => return Some(Given { value, loc }),
            Some(Ok(_)) => format!("it is at least {least}"),
            Some(Err(error)) => error.to_string(),
            None => "write a text with a unit, as \"256KiB\", or a number of bytes".to_owned(),
        };
        self.syntax(&pair.value, format!("`{name}` is a size in bytes")).note(reason);
        None
    }
}
