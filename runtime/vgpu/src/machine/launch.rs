//! Launches: what the host asks for, and what has been checked and given its parameters.

use std::sync::Arc;

use crate::fault::RequestError;
use crate::front::decode::MAX_SHARED_BYTES;
use crate::front::module::PtxModule;
use crate::memory::MemoryBytes;

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Rank that runs the kernel.
    pub rank: usize,
    /// Module of the kernel.
    pub module: Arc<PtxModule>,
    /// Name of the kernel.
    pub kernel: String,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads a block in x, y, z; at most 1024 in all.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// The bytes of each parameter.
    pub params: Vec<Vec<u8>>,
}

/// A launch that has been checked and given its parameters.
#[derive(Debug)]
pub(crate) struct PreparedLaunch {
    /// Number in the machine.
    pub(crate) number: usize,
    pub(crate) module: Arc<PtxModule>,
    pub(crate) entry: u32,
    pub(crate) kernel: Arc<str>,
    pub(crate) grid: [u32; 3],
    pub(crate) threads: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) static_shared: u32,
    /// Bytes that the activations of a warp may take.
    pub(crate) warp_bytes: u64,
    pub(crate) params: MemoryBytes,
    pub(crate) variables: Arc<[u64]>,
    /// Blocks started and ended.
    pub(crate) started: u64,
    pub(crate) ended: u64,
}

/// Warps that a launch may hold at once: each has its registers in memory.
const MAX_RESIDENT_WARPS: u64 = 1 << 16;
/// The most bytes of registers and local memory of all of them.
const MAX_RESIDENT_BYTES: u64 = 8 << 30;

impl PreparedLaunch {
    /// Checks a launch. `number` and `variables` are left for the caller to fill in.
    pub(crate) fn new(
        launch: Launch,
        resident_blocks: Option<usize>,
    ) -> Result<PreparedLaunch, RequestError> {
        let Launch { module, kernel, grid, block, shared_bytes, params, .. } = launch;
        let Some(entry) = module.functions.iter().position(|f| f.entry && *f.name == *kernel) else {
            let known = module.kernels().map(String::from).collect();
            return Err(RequestError::Kernel { kernel, known });
        };
        let function = &module.functions[entry];
        let limits = [
            ("the grid's x extent", u64::from(grid[0]), (1 << 31) - 1),
            ("the grid's y extent", grid[1].into(), 65535),
            ("the grid's z extent", grid[2].into(), 65535),
            ("the block's x extent", block[0].into(), 1024),
            ("the block's y extent", block[1].into(), 1024),
            ("the block's z extent", block[2].into(), 64),
            (
                "the number of threads a block",
                block.iter().map(|&n| u64::from(n)).product(),
                function.max_threads.unwrap_or(1024).min(1024).into(),
            ),
        ];
        for (what, value, limit) in limits {
            if value == 0 || value > limit {
                return Err(RequestError::Shape { kernel, what, value, limit });
            }
        }
        let blocks = grid.iter().fold(1u64, |n, &extent| n.saturating_mul(extent.into()));
        let resident = resident_blocks.map_or(blocks, |n| blocks.min(n as u64));
        let warps = block.iter().product::<u32>().div_ceil(32);
        let value = resident.saturating_mul(warps.into());
        if value > MAX_RESIDENT_WARPS {
            let what = "the number of warps resident at once (`resident_blocks` bounds it)";
            return Err(RequestError::Shape { kernel, what, value, limit: MAX_RESIDENT_WARPS });
        }
        // Calls need memory, too: each warp may take an equal share of what there is.
        let warp_bytes = MAX_RESIDENT_BYTES / value.max(1);
        if function.activation_bytes() > warp_bytes {
            let what = "the registers and local memory of all resident warps in bytes";
            let value = function.activation_bytes().saturating_mul(value);
            return Err(RequestError::Shape { kernel, what, value, limit: MAX_RESIDENT_BYTES });
        }
        let static_shared = function.shared_bytes;
        let total = match shared_bytes {
            0 => static_shared.into(),
            bytes => PtxModule::dynamic_begin(static_shared) + u64::from(bytes),
        };
        if total > MAX_SHARED_BYTES {
            let what = "shared memory in bytes";
            return Err(RequestError::Shape { kernel, what, value: total, limit: MAX_SHARED_BYTES });
        }
        if params.len() != function.params.len() {
            let (given, declared) = (params.len(), function.params.len());
            return Err(RequestError::Params { kernel, what: "the number of parameters", given, declared });
        }
        let bytes = MemoryBytes::zeroed(function.param_bytes as usize);
        for (given, declared) in params.iter().zip(&function.params) {
            let len = declared.bytes as usize;
            if given.len() != len {
                let what = "the size of a parameter in bytes";
                return Err(RequestError::Params { kernel, what, given: given.len(), declared: len });
            }
            bytes.copy_from(declared.offset as usize, given);
        }
        Ok(PreparedLaunch {
            number: 0,
            entry: entry as u32,
            kernel: function.name.clone(),
            module,
            grid,
            threads: block,
            shared_bytes: total as u32,
            static_shared,
            warp_bytes,
            params: bytes,
            variables: Arc::default(),
            started: 0,
            ended: 0,
        })
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }
}
