//! Machines with a clock, and times near to those that are known.

use quadrille_vgpu::{ClockOptions, Config, GpuSpec as GpuModel, Outcome, Topology, Wires};

/// Links that are slow beside everything else, without headers: beta is 10 GB/s, alpha 1000 ns.
pub(crate) fn slow() -> Topology {
    let h100 = Topology::dgx_h100();
    let wires =
        Wires { latency_ns: 1000.0, link_gbps: 10.0, port_gbps: 1000.0, shared_gbps: None, packet_bytes: 0 };
    Topology { name: "slow links".into(), gpu: GpuModel { ..h100.gpu }, wires }
}

pub(crate) fn config(topology: Topology, ranks: usize) -> Config {
    Config { ranks, clock: Some(ClockOptions { topology, timeline: true }), ..Config::default() }
}

pub(crate) fn nanoseconds(outcome: &Outcome) -> f64 {
    outcome.timing.as_ref().unwrap().end as f64 / 1000.0
}

#[track_caller]
pub(crate) fn near(found: f64, expected: f64, percent: f64) {
    let off = (found / expected - 1.0).abs() * 100.0;
    assert!(off <= percent, "{found:.1} ns, expected {expected:.1} ns within {percent}%");
}
