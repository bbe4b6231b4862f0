//! Attributes: which may stand where, and what they say of statements.

use super::parser::{BodyParser, text};
use quadrille_compiler::body::{Expr, StmtAttributes};
use quadrille_compiler::options::{Given, StatementOptions, Transport};
use syn::Attribute;

/// Attributes that say how a statement is carried out; none of them is Rust's own.
pub(crate) const SCHEDULE_ATTRIBUTES: [&str; 5] = ["schedule", "multimem", "channel", "block", "on"];

impl BodyParser {
    /// Reads the attributes of the collective's fn, but for `#[schedule(..)]`. The macro keeps those that are Rust's.
    pub(super) fn fn_attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let path = text(attribute.path());
            match path.as_str() {
                "collective" | "quadrille::collective" => {
                    self.syntax(attribute, "`#[collective(..)]` stands twice");
                }
                "on" | "channel" | "block" => {
                    let message = format!("`#[{path}(..)]` stands on a statement or a block, not on the fn");
                    self.syntax(attribute, message);
                }
                "multimem" => {
                    self.syntax(attribute, "`#[multimem]` stands on a statement or a block, not on the fn")
                        .help("for all of the collective write `#[schedule(transport = multimem)]`");
                }
                _ => {}
            }
        }
    }

    /// Reads the attributes of a statement that moves data or of a block.
    pub(super) fn statement_attributes(&mut self, attributes: &[Attribute]) -> Option<Box<StmtAttributes>> {
        let mut read = StmtAttributes::default();
        let mut any = false;
        for attribute in attributes {
            let path = text(attribute.path());
            let number = match path.as_str() {
                "on" => Some((&mut read.on, "rank")),
                "channel" => Some((&mut read.channel, "number")),
                "block" => Some((&mut read.block, "number")),
                _ => None,
            };
            any |= SCHEDULE_ATTRIBUTES.contains(&path.as_str());
            match number {
                Some((place, what)) => {
                    if place.is_some() {
                        self.syntax(attribute, format!("`#[{path}(..)]` stands twice"));
                    }
                    *place = self.number_of(attribute, &path, what).or(place.take());
                }
                None if path == "schedule" => {
                    let how = self.how(attribute);
                    self.join(&mut read.how, how, attribute);
                }
                None if path == "multimem" => {
                    if attribute.meta.require_path_only().is_err() {
                        self.syntax(attribute, "`#[multimem]` takes no value").help("write `#[multimem]`");
                    }
                    let loc = self.places.of(attribute);
                    let transport = Some(Given { value: Transport::Multimem, loc });
                    self.join(&mut read.how, StatementOptions { transport, protocol: None }, attribute);
                }
                None => self.inert_attribute(attribute, &path),
            }
        }
        any.then(|| Box::new(read))
    }

    /// The number in the parentheses of `#[on(..)]` and the like.
    fn number_of(&mut self, attribute: &Attribute, name: &str, what: &str) -> Option<Expr> {
        match attribute.parse_args::<syn::Expr>() {
            Ok(number) => Some(self.int(&number, &format!("the {what} of `#[{name}(..)]`"))),
            Err(_) => {
                self.syntax(attribute, format!("`#[{name}(..)]` takes one {what}"))
                    .help(format!("write `#[{name}({})]`", if name == "on" { "r" } else { "k" }));
                None
            }
        }
    }

    /// Adds what another attribute of the same statement says.
    fn join(&mut self, how: &mut StatementOptions, more: StatementOptions, attribute: &Attribute) {
        let protocols = how.protocol.is_some() && more.protocol.is_some();
        if protocols || how.transport.is_some() && more.transport.is_some() {
            let what = if protocols { "protocol" } else { "transport" };
            self.syntax(attribute, format!("this statement is given a second {what}"))
                .help("leave one of the two out");
        }
        how.protocol = how.protocol.or(more.protocol);
        how.transport = how.transport.or(more.transport);
    }

    /// Reports attributes that belong to statements where none can stand.
    pub(super) fn stray_attributes(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let path = text(attribute.path());
            if SCHEDULE_ATTRIBUTES.contains(&path.as_str()) {
                let shown = if path == "multimem" { path } else { format!("{path}(..)") };
                self.syntax(attribute, format!("`#[{shown}]` does not belong here"))
                    .help("put it on a statement that moves data, or on a block of them");
            } else {
                self.inert_attribute(attribute, &path);
            }
        }
    }

    fn inert_attribute(&mut self, attribute: &Attribute, path: &str) {
        let inert = ["doc", "allow", "expect", "warn"].contains(&path)
            || path.starts_with("rustfmt::")
            || path.starts_with("clippy::");
        if !inert {
            self.outside(attribute, format!("`#[{path}]`"), "leave it out");
        }
    }
}
