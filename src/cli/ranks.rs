//! World sizes: which one a command takes, and which a collective admits.

use crate::cli::failure::CommandFailure;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::schedule::domain::LARGEST_WORLD;
use std::str::FromStr;

/// World size where the collective lists none, and the largest that is taken unasked.
const USUAL: u32 = 8;

/// `--ranks N`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WorldSize(pub(crate) u32);

/// A text that is no world size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a world size is a whole number from 1 to {LARGEST_WORLD}")]
pub(crate) struct NoWorldSize;

impl FromStr for WorldSize {
    type Err = NoWorldSize;

    fn from_str(text: &str) -> Result<WorldSize, NoWorldSize> {
        text.parse()
            .ok()
            .filter(|ranks| (1..=LARGEST_WORLD).contains(ranks))
            .map(WorldSize)
            .ok_or(NoWorldSize)
    }
}

/// A world size that the collective excludes by `only`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{name}` is not for {ranks} rank{}\nhelp: use --ranks with {}", if *ranks == 1 { "" } else { "s" }, list(admitted))]
pub(crate) struct NotAdmitted {
    /// The collective.
    pub(crate) name: String,
    /// The world size of the command.
    pub(crate) ranks: u32,
    /// The world sizes that the plan is for.
    pub(crate) admitted: Vec<u32>,
}

impl From<NotAdmitted> for CommandFailure {
    fn from(error: NotAdmitted) -> CommandFailure {
        CommandFailure::usage(error)
    }
}

fn list(sizes: &[u32]) -> String {
    sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The world size asked for, else the largest listed one up to 8, else 8 or the smallest that `only` admits.
pub(crate) fn one(collective: &Collective, asked: Option<WorldSize>) -> Result<u32, NotAdmitted> {
    up_to(collective, asked, None)
}

/// As [`one`], but of the listed sizes the largest that the GPUs which are there can hold, else as many as there are.
pub(crate) fn up_to(
    collective: &Collective,
    asked: Option<WorldSize>,
    present: Option<u32>,
) -> Result<u32, NotAdmitted> {
    let Some(WorldSize(ranks)) = asked else {
        let listed = &collective.ranks;
        let most = present.unwrap_or(USUAL);
        let usual = listed.iter().rev().find(|&&ranks| ranks <= most);
        let smallest = listed.first().filter(|_| collective.only);
        return Ok(usual.or(smallest).copied().unwrap_or(most));
    };
    admit(collective, ranks)
}

/// The world sizes to check: the one asked for, else all listed ones, else 8; with `all`, every one up to the largest
/// of these that the collective admits.
pub(crate) fn several(
    collective: &Collective,
    asked: Option<WorldSize>,
    all: bool,
) -> Result<Vec<u32>, NotAdmitted> {
    if let Some(WorldSize(ranks)) = asked {
        return admit(collective, ranks).map(|ranks| vec![ranks]);
    }
    let listed = if collective.ranks.is_empty() { vec![USUAL] } else { collective.ranks.clone() };
    match listed.last() {
        Some(&largest) if all && !collective.only => Ok((1..=largest).collect()),
        _ => Ok(listed),
    }
}

fn admit(collective: &Collective, ranks: u32) -> Result<u32, NotAdmitted> {
    if collective.only && !collective.ranks.contains(&ranks) {
        let (name, admitted) = (collective.name.clone(), collective.ranks.clone());
        return Err(NotAdmitted { name, ranks, admitted });
    }
    Ok(ranks)
}
