//! Kernels written by hand against the ABI: the baselines that proved kernels are measured against.

use quadrille_compiler::emit::Cuda;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::kind::Shape;
use quadrille_runtime::internals::{self, Unproved};
use quadrille_runtime::{Communicator, Error, LoadTimes, LoadedKernel};

/// A kernel written by hand against the ABI (`quadrille_compiler::kernel::abi`). **Nothing of it is proved**: it may race,
/// hang, or write anywhere. Its waits need no bound, and nobody tells it to give up.
///
/// The text is preceded by definitions of `ENTRY` (the name of the `__global__`, `extern "C"`), `RANKS`, `BLOCKS` and
/// `THREADS` (of each rank), and `ONE_LAUNCH`. `ONE_LAUNCH` is 1 where one launch of RANKS times BLOCKS blocks runs all
/// ranks, rank by rank, with the parameter block of rank 0. It is 0 where each rank has a launch of its own.
///
/// Such kernels keep what lasts from call to call in the counter region, as they like; all of it is zero at first. So
/// they need communicators of their own, which call no proved kernels.
#[derive(Clone, Copy, Debug)]
pub struct HandWritten<'a> {
    /// A name, of letters, digits and underscores.
    pub name: &'a str,
    /// CUDA C++ that includes no header.
    pub text: &'a str,
    /// The shape from which the sizes of buffers follow.
    pub shape: Shape,
    /// Thread blocks of each rank; at most the world's block cap.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Element type.
    pub dtype: DType,
}

impl HandWritten<'_> {
    /// Makes the kernel callable by a rank, as it is.
    ///
    /// # Errors
    /// [`Error::BlockCap`] where it has more blocks than the world admits, [`Error::Compile`] where NVRTC does not compile
    /// the text or there is none, [`Error::InFlight`] where calls run.
    pub fn load(&self, communicator: &Communicator) -> Result<(LoadedKernel, LoadTimes), Error> {
        let HandWritten { name, text, shape, blocks, threads, dtype } = *self;
        let most = internals::options(communicator).block_cap;
        if !(1..=most).contains(&blocks) {
            return Err(Error::BlockCap { cap: blocks, most });
        }
        let one_launch = internals::launches_together(communicator);
        let entry = format!("by_hand_{name}");
        let ranks = communicator.ranks();
        let definitions = format!(
            "#define ENTRY {entry}\n#define RANKS {ranks}\n#define BLOCKS {blocks}\n#define THREADS {threads}\n\
             #define ONE_LAUNCH {}\n",
            u32::from(one_launch)
        );
        let cuda = Cuda {
            entry,
            device_bytes: definitions.len(),
            text: definitions + text,
            ranks,
            grid: vec![blocks; ranks as usize],
            one_launch,
            threads,
            block_cap: most,
            staged: false,
            multicast: false,
            reaches_peers: true,
            tiles: None,
            dtype,
            op: RedOp::Sum,
            lines: Vec::new(),
            classes: Vec::new(),
            names: Vec::new(),
        };
        internals::load(communicator, Unproved { name: name.to_owned(), shape, divisible: false, cuda })
    }
}
