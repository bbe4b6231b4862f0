//! The runtimes that execute files, and what each has room for.

use crate::options::Protocol;
use crate::schedule::SLOTS;

/// The runtime that is to run a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Runtime {
    /// Microsoft's MSCCL: 256 steps a thread block.
    #[default]
    Msccl,
    /// RCCL: 64 steps a thread block. Newer ROCm has dropped it (rocm-systems #4340).
    Rccl,
}

/// The most that a runtime takes of a file, as its sources say.
pub(super) struct RuntimeLimits {
    /// Steps of a thread block, those that only wait included.
    pub(super) steps: usize,
    /// Thread blocks of a GPU.
    pub(super) blocks: usize,
    /// Channels.
    pub(super) channels: u32,
    /// Thread blocks of a channel of a GPU that send, and those that receive.
    pub(super) blocks_of_channel: usize,
    /// Chunks of a step.
    pub(super) chunks: u32,
    /// Elements that a parser keeps: `algo`, every `gpu`, and what stands in a GPU's own.
    pub(super) elements: usize,
}

impl Runtime {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Rccl => "RCCL",
            Runtime::Msccl => "MSCCL",
        }
    }

    /// A thing to know about the runtime itself.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            Runtime::Msccl => None,
            Runtime::Rccl => Some("newer ROCm has dropped MSCCL from RCCL (rocm-systems #4340)"),
        }
    }

    /// The limits: of microsoft/msccl at b23e9cd (include/msccl.h, include/devcomm.h, graph/xml.h), and of RCCL at
    /// 0cbce2a (include/msccl/msccl_struct.h, include/device.h).
    pub(super) fn limits(self) -> RuntimeLimits {
        let msccl = RuntimeLimits {
            steps: 256,
            blocks: 216,
            channels: 32,
            blocks_of_channel: 32,
            chunks: 71,
            elements: 4096,
        };
        match self {
            Runtime::Msccl => msccl,
            Runtime::Rccl => RuntimeLimits { steps: 64, blocks: 64, channels: 128, ..msccl },
        }
    }

    /// The largest message of a file that does not say so; `None` where it is any.
    pub(super) fn most_bytes(self) -> Option<u64> {
        (self == Runtime::Msccl).then_some(1 << 27)
    }

    /// Bytes of data of a message, with the buffers that the runtime has by default.
    pub(super) fn slot_bytes(self, protocol: Protocol) -> u64 {
        match (protocol, self) {
            // Four of the eight steps of 4 MiB.
            (Protocol::Simple, _) => 2 << 20,
            // A step of 8 lines of 8 bytes a thread.
            (Protocol::Ll, Runtime::Msccl) => 8 * 8 * 512,
            (Protocol::Ll, Runtime::Rccl) => 8 * 8 * 256,
            // A step of 120 words a thread, of which one in 16 holds flags.
            (Protocol::Ll128, _) => 120 * 8 * 640 / 16 * 15,
        }
    }

    /// The attributes of `algo` without which it refuses a file.
    pub(super) fn needs(self) -> &'static [&'static str] {
        match self {
            Runtime::Msccl => &["name", "nchannels", "coll", "inplace"],
            Runtime::Rccl => &["nchannels", "coll", "inplace", "outofplace", "minBytes", "maxBytes"],
        }
    }
}

/// Messages that a connection has room for in the runtimes. Each is of as many chunks of a step as fit into a slot: of one
/// where chunks are large.
pub(super) fn room(protocol: Protocol) -> u32 {
    match protocol {
        Protocol::Simple => 2,
        Protocol::Ll | Protocol::Ll128 => SLOTS,
    }
}
