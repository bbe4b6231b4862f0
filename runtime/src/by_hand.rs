//! Kernels written by hand against the ABI, beside those that are made and proved here: what these are measured against.

use crate::communicator::Communicator;
use crate::error::Error;
use crate::kernel::{Kernel, LoadTimes};
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::kind::Shape;

/// A kernel written by hand against the ABI (`quadrille_compiler::kernel::abi`), for baselines. **Nothing of it is proved**: it may
/// race, hang, or write anywhere. Its waits need no bound, and nobody tells it to give up.
///
/// In front of the text stand definitions of `ENTRY` (the name of the `__global__`, `extern "C"`), `RANKS`, `BLOCKS` and
/// `THREADS` (of each rank), and `ONE_LAUNCH`: 1 where one launch of RANKS times BLOCKS blocks is that of all ranks, rank by
/// rank, and the parameter block that of rank 0; 0 where each rank is launched for itself.
///
/// Such kernels keep what lasts from call to call in the counter region, as they like; all of it is zero at first. So
/// they get communicators of their own: none that calls proved kernels.
#[derive(Clone, Copy, Debug)]
pub struct ByHand<'a> {
    /// A name, of letters, digits and underscores.
    pub name: &'a str,
    /// CUDA C++ that includes no header.
    pub text: &'a str,
    /// What sizes of buffers follow from.
    pub shape: Shape,
    /// Thread blocks of each rank; at most the world's block cap.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Element type.
    pub dtype: DType,
}

impl Communicator {
    /// Makes a kernel that was written by hand callable, as it is.
    ///
    /// # Errors
    /// [`Error::BlockCap`] where it has more blocks than the world admits, [`Error::Compile`] where NVRTC does not compile
    /// the text or there is none, [`Error::InFlight`] where calls run.
    pub fn load_by_hand(&self, kernel: &ByHand<'_>) -> Result<(Kernel, LoadTimes), Error> {
        let ByHand { name, text, shape, blocks, threads, dtype } = *kernel;
        let shared = &self.group.shared;
        let most = shared.options().block_cap;
        if !(1..=most).contains(&blocks) {
            return Err(Error::BlockCap { cap: blocks, most });
        }
        let mut cache = shared.cache();
        let mut state = shared.lock();
        state.quiet("load a kernel")?;
        let one_launch = state.gpus.together();
        let entry = format!("by_hand_{name}");
        let ranks = shared.ranks();
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
        let (loaded, times) = cache.compile(&mut *state.gpus, name.to_owned(), shape, false, cuda)?;
        Ok((self.kernel(loaded), times))
    }
}
