//! Sorts of channels and buffers, by the names that plans give them.

use crate::program::ids::Buffer;

/// The most chunks of one buffer.
pub(super) const MOST_CHUNKS: u64 = 1 << 16;

/// A sort of channel. What ops name is numbered by sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Channel {
    Memory,
    Port,
    Switch,
}

impl Channel {
    pub(super) const ALL: [(&'static str, Channel); 3] =
        [("memory", Channel::Memory), ("port", Channel::Port), ("switch", Channel::Switch)];

    pub(super) fn name(self) -> &'static str {
        Channel::ALL[self as usize].0
    }
}

/// The names of buffers.
pub(super) const BUFFERS: [(&str, Buffer); 3] =
    [("i", Buffer::Input), ("o", Buffer::Output), ("s", Buffer::Scratch)];
