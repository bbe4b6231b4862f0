//! Collectives that GPUs have loaded.

use crate::driver::Function;
use quadrille_compiler::emit::Cuda;
use quadrille_compiler::program::kind::Shape;
use quadrille_vgpu::{PtxModule, SourceLine};
use std::ffi::OsStr;
use std::fmt;
use std::iter::successors;
use std::path::Path;
use std::sync::Arc;

/// A collective, compiled for a world.
pub(crate) struct Loaded {
    /// The collective's name.
    pub(crate) name: String,
    pub(crate) shape: Shape,
    /// Only counts divisible by the number of chunks are admitted.
    pub(crate) divisible: bool,
    pub(crate) cuda: Cuda,
    /// [`Cuda::hash`].
    pub(crate) hash: u64,
    /// The name that the text has in line tables; differs between texts.
    pub(crate) file: String,
    pub(crate) binary: Binary,
}

/// Code that GPUs have loaded.
#[derive(Clone, Debug)]
pub(crate) enum Binary {
    /// Of virtual GPUs.
    Ptx(Arc<PtxModule>),
    /// Of real ones: the kernel on each rank's device.
    Cuda(Arc<[Function]>),
}

impl Loaded {
    /// The statement that all steps are for; `None` where there are several.
    pub(crate) fn only_statement(&self) -> Option<&str> {
        let mut steps = self.cuda.lines.iter().map(|line| line.what.as_str()).filter(|what| !what.is_empty());
        let first = steps.next()?;
        steps.all(|what| what == first).then_some(first)
    }

    /// The innermost line of a place that belongs to a step: what a step calls is inlined into it.
    pub(crate) fn step_line<'s>(&self, place: &'s SourceLine) -> Option<&'s SourceLine> {
        let around = |line: &&'s SourceLine| line.inlined_at.as_deref();
        successors(Some(place), around).find(|line| self.wrote(line) && self.cuda.what(line.line).is_some())
    }

    /// Returns true if a line is of this program's text.
    pub(crate) fn wrote(&self, line: &SourceLine) -> bool {
        // NVRTC puts a folder before the name that it is given.
        Path::new(&*line.file).file_name() == Some(OsStr::new(&self.file))
    }

    /// The label of a place: the index of its line in [`quadrille_compiler::emit::Cuda::lines`].
    pub(crate) fn label(&self, place: &SourceLine) -> Option<u32> {
        let line = self.step_line(place)?.line;
        self.cuda.lines.partition_point(|known| known.line <= line).checked_sub(1).map(|index| index as u32)
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("name", &self.name).field("file", &self.file).finish_non_exhaustive()
    }
}
