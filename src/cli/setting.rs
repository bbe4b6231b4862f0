//! `--root` and `--param`: what a collective is proved or run for besides the world size.

use crate::cli::failure::CommandFailure;
use clap::Args;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::names::UnknownName;
use std::str::FromStr;

/// The options.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingOptions {
    /// The root, where the kind has one [default: the attribute's]
    #[arg(long, value_name = "RANK")]
    root: Option<u32>,
    /// The value of a parameter of the collective; may be given for several
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<ParamOption>,
}

/// `NAME=VALUE`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ParamOption {
    name: String,
    value: i64,
}

/// A text that is no `NAME=VALUE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a parameter is given as NAME=VALUE, with a whole number: k=3")]
pub(crate) struct NoParam;

impl FromStr for ParamOption {
    type Err = NoParam;

    fn from_str(text: &str) -> Result<ParamOption, NoParam> {
        let (name, value) = text.split_once('=').ok_or(NoParam)?;
        Ok(ParamOption { name: name.trim().to_owned(), value: value.trim().parse().map_err(|_| NoParam)? })
    }
}

/// Options that the collective does not have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SettingError {
    /// A root for a kind without one.
    #[error("`{name}` has no root: it is of kind {kind}\nhelp: leave out --root")]
    NoRoot {
        /// The collective.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
    /// A parameter that the collective does not have.
    #[error(transparent)]
    Param(#[from] UnknownName),
    /// A schedule that the collective does not have.
    #[error("`{name}` has no schedule {given}\nhelp: use --schedule with 1 to {count}")]
    NoSchedule {
        /// The collective.
        name: String,
        /// The number of values given.
        given: usize,
        /// How many it has.
        count: usize,
    },
}

impl From<SettingError> for CommandFailure {
    fn from(error: SettingError) -> CommandFailure {
        CommandFailure::usage(error)
    }
}

/// The index of the schedule that is the `given`-th among the collective's attributes.
pub(crate) fn schedule(collective: &Collective, given: usize) -> Result<usize, SettingError> {
    let count = collective.schedules.len().max(1);
    if (1..=count).contains(&given) {
        Ok(given - 1)
    } else {
        Err(SettingError::NoSchedule { name: collective.name.clone(), given, count })
    }
}

impl SettingOptions {
    /// The collective with these values.
    pub(crate) fn apply(&self, collective: Collective) -> Result<Collective, SettingError> {
        let mut collective = match self.root {
            Some(_) if !collective.kind.rooted() => {
                let kind = collective.kind.name();
                return Err(SettingError::NoRoot { name: collective.name, kind });
            }
            Some(root) => collective.rooted(root),
            None => collective,
        };
        for ParamOption { name, value } in &self.params {
            collective = collective.with_param(name, *value)?;
        }
        Ok(collective)
    }

    /// Every combination of the listed values of the parameters that are not given; the collective's own where they
    /// are.
    pub(crate) fn combinations(&self, collective: &Collective) -> Vec<Collective> {
        let given = |name: &str| self.params.iter().any(|param| param.name == name);
        let mut listed = collective.clone();
        for param in listed.params.iter_mut().filter(|param| given(&param.name)) {
            param.values = vec![param.value];
        }
        let with = |values: Vec<i64>| {
            let mut collective = collective.clone();
            collective.params.iter_mut().zip(values).for_each(|(param, value)| param.value = value);
            collective
        };
        listed.combinations().into_iter().map(with).collect()
    }
}
