//! JSON values with their places: objects whose fields are known, numbers in their range; every problem is kept.

use crate::diagnostic::{Check, Diagnostic, Loc};
use crate::interop::finding;
use crate::interop::lines::Lines;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// JSON and nothing beside it.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses a text; what is wrong with it as JSON.
pub(super) fn parse<'t>(text: &'t str, lines: &Lines<'_>) -> Result<Value<'t>, Vec<Diagnostic>> {
    let wrong = |at: Range, why: String| {
        vec![finding(Check::Syntax, lines.loc(at.start..at.end), format!("not well-formed JSON: {why}"))]
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT)
        .map_err(|error| wrong(error.range(), error.kind().to_string()))?;
    parsed.value.ok_or_else(|| wrong(Range::new(0, 0), "there is no value".to_owned()))
}

/// An object and what it is called in messages.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) object: &'a Object<'a>,
    what: &'a str,
}

/// A number with its place.
pub(super) type Number = (u64, Loc);

/// Reads values, and keeps what is wrong with them.
pub(super) struct Reader<'a> {
    pub(super) lines: &'a Lines<'a>,
    pub(super) findings: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    pub(super) fn report(&mut self, check: Check, loc: Loc, message: impl Into<String>) -> &mut Diagnostic {
        self.findings.push(finding(check, loc, message));
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    pub(super) fn loc(&self, range: Range) -> Loc {
        self.lines.loc(range.start..range.end)
    }

    /// The place of an object.
    pub(super) fn head(&self, fields: Fields<'_>) -> Loc {
        let start = fields.object.range.start;
        self.lines.loc(start..start + 1)
    }

    /// An object, whose fields have names that are known.
    pub(super) fn object(
        &mut self,
        value: &'a Value<'a>,
        what: &'a str,
        known: &[&str],
    ) -> Option<Fields<'a>> {
        let Some(object) = value.as_object() else {
            let at = self.loc(value.range());
            self.report(Check::Syntax, at, format!("{what} is an object"));
            return None;
        };
        let fields = Fields { object, what };
        self.known(fields, known);
        Some(fields)
    }

    /// Reports fields that an object does not have, or has twice.
    pub(super) fn known(&mut self, fields: Fields<'a>, known: &[&str]) {
        let mut seen = BTreeSet::new();
        for property in &fields.object.properties {
            let name = property.name.as_str();
            let at = self.loc(property.name.range());
            if !known.contains(&name) && !known.is_empty() {
                self.report(Check::Syntax, at, format!("{} has no field `{name}`", fields.what))
                    .notes
                    .push(format!("it has {}", known.join(", ")));
            } else if !seen.insert(name) {
                self.report(Check::Syntax, at, format!("{} has `{name}` twice", fields.what));
            }
        }
    }

    /// A field, if it is there.
    pub(super) fn field(fields: Fields<'a>, name: &str) -> Option<&'a Value<'a>> {
        fields.object.get(name).map(|property| &property.value)
    }

    /// A field that has to be there.
    pub(super) fn due(&mut self, fields: Fields<'a>, name: &str) -> Option<&'a Value<'a>> {
        let found = Reader::field(fields, name);
        if found.is_none() {
            let at = self.head(fields);
            self.report(Check::Syntax, at, format!("{} without `{name}`", fields.what));
        }
        found
    }

    pub(super) fn as_number(
        &mut self,
        value: &Value<'_>,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Option<Number> {
        let at = self.loc(value.range());
        let number = value.as_number_lit().and_then(|number| number.value.parse::<u64>().ok());
        let found = number.filter(|number| range.contains(number));
        if found.is_none() {
            let (low, high) = range.into_inner();
            self.report(Check::Syntax, at, format!("`{name}` is a whole number from {low} to {high}"));
        }
        found.map(|number| (number, at))
    }

    pub(super) fn number(
        &mut self,
        fields: Fields<'a>,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Option<Number> {
        let value = self.due(fields, name)?;
        self.as_number(value, name, range)
    }

    /// As [`Reader::number`]; `absent` where the field is not there.
    pub(super) fn optional(
        &mut self,
        fields: Fields<'a>,
        name: &str,
        range: RangeInclusive<u64>,
        absent: u64,
    ) -> Option<u64> {
        match Reader::field(fields, name) {
            Some(value) => self.as_number(value, name, range).map(|(number, _)| number),
            None => Some(absent),
        }
    }

    pub(super) fn boolean(&mut self, fields: Fields<'a>, name: &str, absent: bool) -> Option<bool> {
        let Some(value) = Reader::field(fields, name) else { return Some(absent) };
        let found = value.as_boolean_lit().map(|literal| literal.value);
        if found.is_none() {
            let at = self.loc(value.range());
            self.report(Check::Syntax, at, format!("`{name}` is true or false"));
        }
        found
    }

    /// The text of a field and where it stands.
    pub(super) fn text(&mut self, fields: Fields<'a>, name: &str) -> Option<(&'a str, Loc)> {
        let value = self.due(fields, name)?;
        let at = self.loc(value.range());
        let found = value.as_string_lit().map(|literal| &*literal.value);
        if found.is_none() {
            self.report(Check::Syntax, at, format!("`{name}` is a string"));
        }
        found.map(|text| (text, at))
    }

    /// The meaning of a field's text.
    pub(super) fn choice<T: Clone>(
        &mut self,
        fields: Fields<'a>,
        name: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let (text, at) = self.text(fields, name)?;
        let found = choices.iter().find(|(choice, _)| *choice == text);
        if found.is_none() {
            let known: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
            self.report(Check::Syntax, at, format!("`{name}` is one of {}", known.join(", ")));
        }
        found.map(|(_, value)| value.clone())
    }

    /// The elements of a field; none where it is not there.
    pub(super) fn list(&mut self, fields: Fields<'a>, name: &str) -> &'a [Value<'a>] {
        let Some(value) = Reader::field(fields, name) else { return &[] };
        let found = value.as_array().map(|array| &array.elements[..]);
        if found.is_none() {
            let at = self.loc(value.range());
            self.report(Check::Syntax, at, format!("`{name}` is a list"));
        }
        found.unwrap_or_default()
    }

    /// The elements of a field that has to be there.
    pub(super) fn due_list(&mut self, fields: Fields<'a>, name: &str) -> &'a [Value<'a>] {
        match self.due(fields, name) {
            Some(_) => self.list(fields, name),
            None => &[],
        }
    }

    pub(super) fn numbers(
        &mut self,
        fields: Fields<'a>,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Vec<Number> {
        let list = self.due_list(fields, name);
        list.iter().filter_map(|value| self.as_number(value, name, range.clone())).collect()
    }
}
