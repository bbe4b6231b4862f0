//! Launching the kernels of `tests/ptx` and moving numbers.

pub(crate) mod apply;
pub(crate) mod clock;
pub(crate) mod exact;
pub(crate) mod ring;

use std::sync::Arc;

use quadrille_vgpu::{Config, Fault, Launch, Machine, Outcome, PtxModule, RequestError};

pub(crate) const BASICS: &str = include_str!("../ptx/basics.ptx");
pub(crate) const MESSAGES: &str = include_str!("../ptx/messages.ptx");
pub(crate) const PACKED: &str = include_str!("../ptx/packed.ptx");

pub(crate) fn module(text: &str) -> Arc<PtxModule> {
    Arc::new(PtxModule::parse(text).unwrap_or_else(|e| panic!("{e}")))
}

/// A hand-written kernel around some instructions; `%rd1` is its parameter, and registers of all types exist.
pub(crate) fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .b64 %rd<30>;\n\
         .reg .f64 %fd<20>;\n\
         ld.param.u64 %rd1, [out];\n{body}\nret;\n}}\n"
    )
}

pub(crate) trait Bytes {
    fn bytes(&self) -> Vec<u8>;
}

macro_rules! bytes {
    ($($t:ty)*) => {$(
        impl Bytes for $t {
            fn bytes(&self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
        }
    )*};
}
bytes!(u8 u16 i32 u32 f32 u64 i64 f64);

impl Bytes for &[u8] {
    fn bytes(&self) -> Vec<u8> {
        self.to_vec()
    }
}

impl<T: Bytes> Bytes for [T] {
    fn bytes(&self) -> Vec<u8> {
        self.iter().flat_map(Bytes::bytes).collect()
    }
}

pub(crate) struct Gpu {
    pub(crate) machine: Machine,
    pub(crate) module: Arc<PtxModule>,
}

impl Gpu {
    pub(crate) fn new(text: &str, config: Config) -> Gpu {
        Gpu { machine: Machine::new(config).unwrap(), module: module(text) }
    }

    pub(crate) fn upload<T: Bytes>(&mut self, rank: usize, label: &str, values: &[T]) -> u64 {
        let bytes = values.bytes();
        let at = self.machine.alloc(rank, bytes.len() as u64, 256, label).unwrap();
        self.machine.write(at, &bytes).unwrap();
        at
    }

    pub(crate) fn alloc(&mut self, rank: usize, label: &str, bytes: u64) -> u64 {
        self.machine.alloc(rank, bytes, 256, label).unwrap()
    }

    pub(crate) fn zeroed(&mut self, rank: usize, label: &str, bytes: u64) -> u64 {
        self.machine.alloc_zeroed(rank, bytes, 256, label).unwrap()
    }

    pub(crate) fn launch(&mut self, rank: usize, kernel: &str, grid: u32, block: u32, params: &[&dyn Bytes]) {
        self.try_launch(rank, kernel, [grid, 1, 1], [block, 1, 1], 0, params).unwrap();
    }

    pub(crate) fn try_launch(
        &mut self,
        rank: usize,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        params: &[&dyn Bytes],
    ) -> Result<(), RequestError> {
        let params = params.iter().map(|p| p.bytes()).collect();
        let module = self.module.clone();
        self.machine.launch(Launch { rank, module, kernel: kernel.into(), grid, block, shared_bytes, params })
    }

    pub(crate) fn run(&mut self) -> Outcome {
        self.machine.run().unwrap_or_else(|fault| panic!("{fault}"))
    }

    pub(crate) fn fault(&mut self) -> Fault {
        self.machine.run().expect_err("the run must fail")
    }

    pub(crate) fn u32s(&self, at: u64, n: usize) -> Vec<u32> {
        let bytes = self.machine.read(at, 4 * n).unwrap_or_else(|fault| panic!("{fault}"));
        bytes.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
    }

    pub(crate) fn f32s(&self, at: u64, n: usize) -> Vec<f32> {
        self.u32s(at, n).into_iter().map(f32::from_bits).collect()
    }

    pub(crate) fn u64s(&self, at: u64, n: usize) -> Vec<u64> {
        let words = self.u32s(at, 2 * n);
        words.chunks_exact(2).map(|w| u64::from(w[0]) | u64::from(w[1]) << 32).collect()
    }
}
