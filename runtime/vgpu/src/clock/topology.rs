//! The machine that the virtual clock models: GPUs, and the links between them.
//!
//! Every GPU reaches every other one directly or through a switch. Graphs of nodes, routes over several links and
//! topologies from files have their place in [`Wires`], which is the only part that knows of links.

/// One instant or duration of virtual time, in picoseconds.
pub type Picoseconds = u64;

/// GPUs and the links between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Its name, as in `dgx-h100`.
    pub name: String,
    /// Each of the GPUs.
    pub gpu: GpuSpec,
    /// The links between them.
    pub wires: Wires,
}

/// A GPU.
///
/// Latencies in cycles: "Hardware features of different Nvidia GPU architectures" (PMC10448217, table 3), which gives 4
/// for arithmetic, 20 for shared memory, 200 for the L2 cache and 400 for global memory; arXiv:2402.13499 measures
/// about 30, 260 and 480 on Hopper. Rates of instructions: CUDA C++ Programming Guide, "Arithmetic Instructions".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuSpec {
    /// Cycles a nanosecond.
    pub clock_ghz: f64,
    /// Streaming multiprocessors; block b of a launch has number b modulo this.
    pub sms: u32,
    /// Instructions of warps that an SM issues a cycle.
    pub issue: u32,
    /// Cycles until arithmetic gives its result.
    pub arithmetic_cycles: u32,
    /// Cycles until a load from shared memory gives its value.
    pub shared_cycles: u32,
    /// Cycles until a load gives what lies in the L2 cache; flags do.
    pub cache_cycles: u32,
    /// Cycles until a load gives what lies in global memory; data do.
    pub memory_cycles: u32,
    /// Cycles from the last arrival at a barrier of a block until its warps go on.
    pub barrier_cycles: u32,
    /// Cycles between two atomics on one address.
    pub atomic_cycles: u32,
    /// Bytes that an SM and the rest of the GPU exchange a cycle.
    pub sm_bytes_a_cycle: u32,
    /// GB/s of global memory, whoever accesses it.
    pub memory_gbps: f64,
}

/// The links between GPUs. GB/s is 10^9 bytes a second; every rate is that of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wires {
    /// alpha: nanoseconds from a store's issue until a peer's memory has its first byte.
    pub latency_ns: f64,
    /// From one GPU to one other GPU.
    pub link_gbps: f64,
    /// From one GPU to all others together.
    pub port_gbps: f64,
    /// From all GPUs together, where they share something.
    pub shared_gbps: Option<f64>,
    /// Bytes that go with each packet: a packet holds bytes of one line of 128.
    pub packet_bytes: u32,
}

impl Topology {
    /// The names of the presets.
    pub const PRESETS: [&'static str; 4] = ["dgx-h100", "hgx-h200", "dgx-a100", "pcie"];

    /// A preset by its name.
    pub fn preset(name: &str) -> Option<Topology> {
        Some(match name {
            "dgx-h100" => Topology::dgx_h100(),
            "hgx-h200" => Topology::hgx_h200(),
            "dgx-a100" => Topology::dgx_a100(),
            "pcie" => Topology::pcie(),
            _ => return None,
        })
    }

    /// H100 SXM on NVSwitches. NVLink 4 has 450 GB/s a direction, of which 128-byte payloads leave about 370 (NVIDIA,
    /// nccl-tests issues 149 and 212): 28 bytes a packet. 600 ns is NCCL's constant for a hop of LL, of which polling
    /// takes about 100. 132 SMs at 1.98 GHz, 3350 GB/s (H100 data sheet).
    pub fn dgx_h100() -> Topology {
        let gpu = GpuSpec { clock_ghz: 1.98, sms: 132, memory_gbps: 3350.0, ..GpuSpec::A100 };
        Topology { name: "dgx-h100".into(), gpu, wires: Wires::nvswitch(450.0) }
    }

    /// As [`Topology::dgx_h100`] with 4800 GB/s of memory (H200 data sheet).
    pub fn hgx_h200() -> Topology {
        let h100 = Topology::dgx_h100();
        Topology { name: "hgx-h200".into(), gpu: GpuSpec { memory_gbps: 4800.0, ..h100.gpu }, ..h100 }
    }

    /// A100 SXM on NVSwitches: NVLink 3 has 300 GB/s a direction. 108 SMs at 1.41 GHz, 2039 GB/s (A100 data sheet).
    pub fn dgx_a100() -> Topology {
        Topology { name: "dgx-a100".into(), gpu: GpuSpec::A100, wires: Wires::nvswitch(300.0) }
    }

    /// The same GPUs on PCIe 4.0 x16: 16 GT/s over 16 lanes with 128 of 130 bits, 31.5 GB/s a direction, and 24 bytes
    /// of header and framing a packet. The latency is an assumption; what root complexes share is left out.
    pub fn pcie() -> Topology {
        let wires = Wires {
            latency_ns: 1000.0,
            link_gbps: 31.5,
            port_gbps: 31.5,
            shared_gbps: None,
            packet_bytes: 24,
        };
        Topology { name: "pcie".into(), gpu: GpuSpec::A100, wires }
    }

    /// The highest rate of a copy of whole lines from GPU to GPU, in GB/s (beta).
    pub fn payload_gbps(&self) -> f64 {
        let Wires { link_gbps, port_gbps, packet_bytes, .. } = self.wires;
        let line = f64::from(LINE as u32);
        link_gbps.min(port_gbps) * line / (line + f64::from(packet_bytes))
    }

    /// Returns what is wrong with the topology: a rate that is not positive, or an impossible time.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let Topology { gpu, wires, .. } = self;
        let positive = |rate: f64| rate.is_finite() && rate > 0.0;
        let rates = [gpu.clock_ghz, gpu.memory_gbps, wires.link_gbps, wires.port_gbps];
        let rates = rates.into_iter().chain(wires.shared_gbps);
        if !rates.into_iter().all(positive) {
            Some("the clock rate and every bandwidth must be positive")
        } else if gpu.sms == 0 || gpu.issue == 0 || gpu.sm_bytes_a_cycle == 0 {
            Some("a GPU needs an SM that issues instructions and exchanges bytes")
        } else if !(0.0..=1e9).contains(&wires.latency_ns) {
            Some("the latency must be between 0 and a second")
        } else {
            None
        }
    }

    pub(crate) fn cycles(&self, cycles: u32) -> Picoseconds {
        picoseconds(f64::from(cycles) / self.gpu.clock_ghz)
    }
}

impl GpuSpec {
    const A100: GpuSpec = GpuSpec {
        clock_ghz: 1.41,
        sms: 108,
        issue: 4,
        arithmetic_cycles: 4,
        shared_cycles: 30,
        cache_cycles: 260,
        memory_cycles: 480,
        barrier_cycles: 20,
        atomic_cycles: 2,
        sm_bytes_a_cycle: 64,
        memory_gbps: 2039.0,
    };
}

impl Wires {
    /// Every GPU has one port to a switch that slows nothing down.
    fn nvswitch(gbps: f64) -> Wires {
        Wires { latency_ns: 500.0, link_gbps: gbps, port_gbps: gbps, shared_gbps: None, packet_bytes: 28 }
    }
}

/// Bytes of a line: packets do not cross them.
pub(crate) const LINE: u64 = 128;

/// Converts nanoseconds.
pub(crate) fn picoseconds(nanoseconds: f64) -> Picoseconds {
    (nanoseconds * 1000.0).round() as Picoseconds
}
