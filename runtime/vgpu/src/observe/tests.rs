use std::sync::{Arc, Mutex};

use super::{BlockInfo, MemoryTouch, Observer, WarpEvent, WarpSite};
use crate::fault::{AccessKind, Fault, Space};
use crate::isa::{MemoryOrder, Scope};
use crate::registers::{NO_REG, Reg, Regs};
use crate::{Config, Launch, Machine, PtxModule};

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down what it sees, and adds 1000 to every acquired value.
#[derive(Debug)]
struct Recorder {
    log: Log,
}

impl Recorder {
    fn note(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }
}

impl Observer for Recorder {
    fn touch(&mut self, touch: &MemoryTouch<'_>) -> Result<(), Fault> {
        let lane = touch.mask.trailing_zeros() as usize;
        let (MemoryTouch { kind, access, space, mask, site, .. }, at) = (touch, touch.addresses[lane]);
        let at = if *space == Space::Global { site.memory.near(at).unwrap().offset } else { at as i64 };
        let (order, line) = (access.order, site.place(lane).ptx_line);
        self.note(format!("{kind} {space} {order:?} {at} {:#x} line {line} warp {}", mask, site.warp));
        match (kind, access.order, access.scope) {
            (AccessKind::Store, MemoryOrder::Release, scope) if scope != Scope::Sys => {
                Err(Fault::Trap(Box::new(site.place(lane))))
            }
            _ => Ok(()),
        }
    }

    fn done(&mut self, touch: &MemoryTouch<'_>, regs: &mut Regs, to: &[Reg]) -> Result<bool, Fault> {
        if touch.kind != AccessKind::Store && touch.access.order == MemoryOrder::Acquire && to[0] != NO_REG {
            for lane in crate::registers::lanes(touch.mask) {
                let value = regs.read(touch.access.bank, to[0], lane);
                regs.write(touch.access.bank, to[0], lane, value + 1000);
            }
        }
        Ok(false)
    }

    fn event(&mut self, site: WarpSite<'_>, event: WarpEvent) -> Result<(), Fault> {
        self.note(format!("{event:x?} line {} warp {}", site.place(0).ptx_line, site.warp));
        Ok(())
    }

    fn block_starts(&mut self, block: &BlockInfo) {
        self.note(format!("block {} starts", block.shape.linear()));
    }

    fn block_ends(&mut self, block: &BlockInfo) {
        self.note(format!("block {} ends", block.shape.linear()));
    }

    fn launch_ends(&mut self, block: &BlockInfo) {
        self.note(format!("launch {} ends", block.launch));
    }
}

fn run(body: &str) -> (Result<(), Fault>, Vec<String>, Vec<u8>) {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .pred %p<4>;\n\
         .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 8 .b8 tile[64]; ld.param.u64 %rd1, [p];\n{body}\nret;\n}}"
    );
    let mut machine = Machine::new(Config::default()).unwrap();
    let log = Log::default();
    machine.observers.others.push(Box::new(Recorder { log: log.clone() }));
    let at = machine.alloc_zeroed(0, 64, 8, "data").unwrap();
    let launch = Launch {
        rank: 0,
        module: Arc::new(PtxModule::parse(&text).unwrap()),
        kernel: "k".into(),
        grid: [1, 1, 1],
        block: [32, 1, 1],
        shared_bytes: 0,
        params: vec![at.to_le_bytes().to_vec()],
    };
    machine.launch(launch).unwrap();
    let result = machine.run().map(drop);
    let log = std::mem::take(&mut *log.lock().unwrap());
    (result, log, machine.read(at, 64).unwrap())
}

#[test]
fn all_that_warps_do_is_seen_and_loads_can_be_replaced() {
    let body = "ld.acquire.sys.global.u32 %r1, [%rd1+4];\nst.shared.u32 [tile+8], %r1;\nfence.acq_rel.sys;\n\
                bar.warp.sync 0xffffffff;\nbar.sync 1, 32;\nmov.u32 %r2, %tid.x;\nsetp.eq.u32 %p1, %r2, 3;\n\
                @%p1 st.u32 [%rd1], %r1;\n@%p1 atom.global.add.u32 %r3, [%rd1+8], 5;\nshfl.sync.idx.b32 %r4, %r1, 0, 31, 0xffffffff;\n\
                ld.shared.u32 %r4, [tile+8];";
    let (result, log, data) = run(body);
    result.unwrap();
    let expected = [
        "block 0 starts",
        "load global Acquire 4 0xffffffff line 8 warp 0",
        "store shared Weak 8 0xffffffff line 9 warp 0",
        "Fence { order: AcqRel, scope: Sys, mask: ffffffff } line 10 warp 0",
        "WarpSync { mask: ffffffff, live: ffffffff } line 11 warp 0",
        "Arrive { barrier: 1, mask: ffffffff, waits: true } line 12 warp 0",
        "Complete { barrier: 1 } line 12 warp 0",
        "store global Weak 0 0x8 line 15 warp 0",
        "atomic global Relaxed 8 0x8 line 16 warp 0",
        "load shared Weak 8 0xffffffff line 18 warp 0",
        "block 0 ends",
        "launch 0 ends",
    ];
    assert_eq!(log, expected);
    assert_eq!(data[..4], 1000u32.to_le_bytes());
    assert_eq!(data[8..12], 5u32.to_le_bytes());
}

#[test]
fn a_fault_of_the_observer_ends_the_run_before_the_access() {
    let (result, log, data) = run("mov.u32 %r1, 7; st.release.gpu.global.u32 [%rd1], %r1;");
    assert!(matches!(result, Err(Fault::Trap(place)) if place.ptx_line == 8));
    assert_eq!((log.len(), &data[..4]), (2, &[0; 4][..]));
}
