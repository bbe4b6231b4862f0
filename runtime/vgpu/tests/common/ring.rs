//! A ring all-reduce of eight ranks as it ships: its kernel, and the parameter block that it takes.

use std::sync::Arc;

use quadrille_vgpu::{Launch, Machine, PtxModule};

pub(crate) const RANKS: usize = 8;
const TEXT: &str = include_str!("../ptx/ring_all_reduce.ptx");
const KERNEL: &str = "quadrille_ring_all_reduce_8r_bf16_sum";
/// Three words for each pair of blocks of two ranks, and for each block's start.
const COUNTER_BYTES: u64 = 8 * 3 * (8 * 32 + 8 * 32 * 32);

pub(crate) struct Ring {
    module: Arc<PtxModule>,
    /// The data of each rank, in place.
    #[allow(dead_code, reason = "the bench does not look at them")]
    pub(crate) data: Vec<u64>,
    params: Vec<Vec<u8>>,
}

impl Ring {
    /// `count` elements of 2 bytes on each rank.
    pub(crate) fn new(machine: &mut Machine, count: u64) -> Ring {
        let mut each = |bytes, align, label| -> Vec<u64> {
            let alloc = |rank| machine.alloc_zeroed(rank, bytes, align, label).expect("there is room");
            (0..RANKS).map(alloc).collect()
        };
        let data = each(2 * count, 256, "data");
        let (status, counters) = (each(32, 32, "status"), each(COUNTER_BYTES, 256, "counters"));
        let params = (0..RANKS).map(|rank| {
            // Version 2 and the rank; the count; the hash of the call; spin limit, abort, status, multicast, scalar.
            let mut words = vec![2 | (rank as u64) << 32, count, 7, 0, 0, status[rank], 0, 0];
            for table in [&data, &data, &vec![0; RANKS], &counters] {
                words.extend(table);
            }
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        });
        let params = params.collect();
        Ring { module: Arc::new(PtxModule::parse(TEXT).expect("the module parses")), data, params }
    }

    pub(crate) fn launch(&self, machine: &mut Machine) {
        for (rank, params) in self.params.iter().enumerate() {
            let launch = Launch {
                rank,
                module: self.module.clone(),
                kernel: KERNEL.into(),
                grid: [1, 1, 1],
                block: [512, 1, 1],
                shared_bytes: 0,
                params: vec![params.clone()],
            };
            machine.launch(launch).expect("the kernel exists");
        }
    }
}
