//! Findings of the memory model: data races and packets that are overwritten too early.

use std::fmt;

use crate::fault::place::{AccessKind, FaultPlace, Near, Space};

/// One of two accesses of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// Instruction and thread (the lowest lane, where several accessed alike).
    pub place: FaultPlace,
    /// Number of the warp in its block.
    pub warp: u32,
    /// Load, store or atomic.
    pub kind: AccessKind,
    /// The scope of a strong access: `cta`, `gpu` or `sys`; none of a weak one.
    pub scope: Option<&'static str>,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strength = match self.scope {
            Some(scope) => format!("strong, scope {scope}"),
            None => "weak".to_owned(),
        };
        write!(f, "{} ({strength}) by warp {} at {}", self.kind, self.warp, self.place)
    }
}

/// Why two accesses are a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RaceReason {
    /// At least one is weak, and nothing puts them in order.
    Unordered,
    /// Both are strong, but the scope of one does not include the other thread.
    Scope,
    /// Both are strong, but they are of different sizes or begin at different bytes.
    Size,
    /// They are in order but for a missing `fence.proxy.async`.
    AsyncProxy,
    /// They are in order but for a missing `fence.proxy.alias`: they reach the bytes by two addresses.
    AliasProxy,
}

impl fmt::Display for RaceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RaceReason::Unordered => "nothing puts them in order",
            RaceReason::Scope => "the scope of one does not include the thread of the other",
            RaceReason::Size => "both are strong, but not of the same bytes",
            RaceReason::AsyncProxy => "no `fence.proxy.async` stands between them",
            RaceReason::AliasProxy => {
                "they reach the same bytes by two addresses, and no `fence.proxy.alias` stands between them"
            }
        })
    }
}

/// Two accesses to the same bytes, at least one a store, that may happen in any order or at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The earlier one in this run.
    pub first: Party,
    /// The later one.
    pub second: Party,
    /// State space.
    pub space: Space,
    /// First address of the later one's element.
    pub address: u64,
    /// Bytes of that element.
    pub bytes: u64,
    /// The allocation, for memory of ranks.
    pub near: Option<Near>,
    /// Why they race.
    pub reason: RaceReason,
}

fn location(
    f: &mut fmt::Formatter<'_>,
    bytes: u64,
    space: Space,
    at: u64,
    near: Option<&Near>,
) -> fmt::Result {
    write!(f, "{bytes} bytes at {space} address {at:#x}")?;
    match near {
        Some(near) => write!(f, ", {near}"),
        None => Ok(()),
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        location(f, self.bytes, self.space, self.address, self.near.as_ref())?;
        write!(f, ": {}, and earlier {}; {}", self.second, self.first, self.reason)
    }
}

/// A packet that was written again before its reader was done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotReuse {
    /// The store of the content that is lost.
    pub first: Party,
    /// The store that overwrites it.
    pub second: Party,
    /// State space.
    pub space: Space,
    /// First address of the store.
    pub address: u64,
    /// Bytes of the store's element.
    pub bytes: u64,
    /// The allocation, for memory of ranks.
    pub near: Option<Near>,
    /// The rank, block and warp of a reader that the second store does not know to be done; none if nobody has read.
    pub reader: Option<(usize, [u32; 3], u32)>,
}

impl fmt::Display for SlotReuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        location(f, self.bytes, self.space, self.address, self.near.as_ref())?;
        write!(f, ": {} overwrites what came by {}, ", self.second, self.first)?;
        match self.reader {
            Some((rank, [x, y, z], warp)) => write!(
                f,
                "which rank {rank}, block ({x}, {y}, {z}), warp {warp} has read; the store does not know that it is done"
            ),
            None => f.write_str("which nobody has read"),
        }
    }
}
