//! Calls that have been checked: what a rank has queued.

use crate::error::Signature;
use crate::gpus::Loaded;
use quadrille_compiler::kernel::abi::{self, call_hash};
use quadrille_compiler::program::ids::Buffer;
use std::sync::Arc;

/// A buffer, as a rank has queued it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum View {
    /// A view of a window.
    Window {
        window: usize,
        /// The offset in the window.
        start: u64,
        /// The offset among the windows.
        offset: u64,
    },
    /// Memory of the rank alone.
    Plain { address: u64 },
}

impl View {
    /// The window that it is of.
    pub(crate) fn window(self) -> Option<usize> {
        match self {
            View::Window { window, .. } => Some(window),
            View::Plain { .. } => None,
        }
    }

    /// Returns the view's offset in its window, if it is of this one.
    pub(crate) fn start_in(self, index: usize) -> Option<u64> {
        match self {
            View::Window { window, start, .. } if window == index => Some(start),
            _ => None,
        }
    }

    fn offset(self) -> u64 {
        match self {
            View::Window { offset, .. } => offset,
            View::Plain { .. } => 0,
        }
    }
}

/// A call that has been checked and not run.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) program: Arc<Loaded>,
    pub(crate) count: u64,
    /// `None` in place.
    pub(crate) input: Option<View>,
    /// `data` in place.
    pub(crate) output: View,
    /// The caller's stream, a `CUstream`; `None` for the rank's own.
    pub(crate) stream: Option<usize>,
}

impl Queued {
    pub(crate) fn views(&self) -> impl Iterator<Item = View> {
        self.input.into_iter().chain([self.output])
    }

    /// Returns true if it does the same as another one, on the same memory.
    pub(crate) fn equals(&self, other: &Queued) -> bool {
        Arc::ptr_eq(&self.program, &other.program)
            && (self.count, self.input, self.output) == (other.count, other.input, other.output)
    }

    pub(crate) fn touches(&self, window: usize) -> bool {
        self.views().any(|view| view.window() == Some(window))
    }

    /// The views with the names that the program has for them.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = (Buffer, View)> {
        let output = if self.input.is_some() { Buffer::Output } else { Buffer::Data };
        self.input.map(|view| (Buffer::Input, view)).into_iter().chain([(output, self.output)])
    }

    pub(crate) fn signature(&self) -> Signature {
        let Loaded { name, cuda, hash, .. } = &*self.program;
        Signature {
            program: name.clone(),
            count: self.count,
            dtype: cuda.dtype,
            op: cuda.op,
            offsets: self.offsets().collect(),
            kernel: *hash,
        }
    }

    /// Returns the hash that start signals carry.
    pub(crate) fn hash(&self) -> u32 {
        let Loaded { cuda, hash, .. } = &*self.program;
        let offsets: Vec<u64> = self.offsets().collect();
        let both = [offsets[0], offsets[offsets.len() - 1]];
        call_hash(*hash, self.count, cuda.dtype, cuda.op, &both)
    }

    /// Window offsets that have to be equal on every rank: of kernels that reach peers' buffers.
    fn offsets(&self) -> impl Iterator<Item = u64> {
        let reaches = self.program.cuda.reaches_peers;
        self.views().map(move |view| if reaches { view.offset() } else { 0 })
    }

    /// Bytes of scratch that the call needs on every rank.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        let Loaded { shape, divisible, cuda, .. } = &*self.program;
        let chunk = abi::chunk_elements(self.count, shape.chunks, *divisible, cuda.dtype);
        u64::from(shape.scratch) * chunk * cuda.dtype.bytes() as u64
    }
}
