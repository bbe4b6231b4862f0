//! Everything that observes a machine, as one observer.

use crate::clock::VirtualClock;
use crate::fault::Fault;
use crate::isa::ClockUnit;
use crate::model::Model;
use crate::observe::{BlockInfo, MemoryTouch, MulticastAccess, Observer, WarpEvent, WarpSite};
use crate::registers::{Reg, Regs};

/// All that observe a machine.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    pub(crate) model: Option<Box<Model>>,
    pub(crate) clock: Option<Box<VirtualClock>>,
    pub(crate) others: Vec<Box<dyn Observer>>,
}

impl Observers {
    /// Those there are, as one.
    pub(crate) fn active(&mut self) -> Option<&mut (dyn Observer + 'static)> {
        if self.others.is_empty() && self.clock.is_none() {
            return self.model.as_deref_mut().map(|model| model as &mut (dyn Observer + 'static));
        }
        Some(self)
    }

    fn each(&mut self) -> impl Iterator<Item = &mut dyn Observer> {
        let model = self.model.iter_mut().map(|model| &mut **model as &mut dyn Observer);
        let clock = self.clock.iter_mut().map(|clock| &mut **clock as &mut dyn Observer);
        model.chain(clock).chain(self.others.iter_mut().map(|other| &mut **other as &mut dyn Observer))
    }
}

impl Observer for Observers {
    fn issue(&mut self, site: &WarpSite<'_>, frame: usize, regs: &Regs, active: u32) -> bool {
        self.clock.as_deref_mut().is_none_or(|clock| clock.issue(site, frame, regs, active))
    }

    fn time(&mut self, unit: ClockUnit) -> Option<u64> {
        self.clock.as_deref_mut()?.time(unit)
    }

    fn due(&mut self, block: u32, warp: u32) -> u64 {
        self.clock.as_deref_mut().map_or(0, |clock| clock.due(block, warp))
    }

    fn turn(&mut self, now: u64, until: u64) {
        if let Some(clock) = &mut self.clock {
            clock.turn(now, until);
        }
    }

    fn call(&mut self, site: &WarpSite<'_>) -> u32 {
        self.model.as_deref_mut().map_or(0, |model| model.call(site))
    }

    fn touch(&mut self, touch: &MemoryTouch<'_>) -> Result<(), Fault> {
        self.each().try_for_each(|observer| observer.touch(touch))
    }

    fn done(&mut self, touch: &MemoryTouch<'_>, regs: &mut Regs, to: &[Reg]) -> Result<bool, Fault> {
        self.each().try_fold(false, |replaced, observer| Ok(replaced | observer.done(touch, regs, to)?))
    }

    fn multicast(&mut self, multicast: &MulticastAccess<'_>) {
        self.each().for_each(|observer| observer.multicast(multicast));
    }

    fn event(&mut self, site: WarpSite<'_>, event: WarpEvent) -> Result<(), Fault> {
        self.each().try_for_each(|observer| observer.event(site, event))
    }

    fn block_starts(&mut self, block: &BlockInfo) {
        self.each().for_each(|observer| observer.block_starts(block));
    }

    fn block_ends(&mut self, block: &BlockInfo) {
        self.each().for_each(|observer| observer.block_ends(block));
    }

    fn launch_ends(&mut self, block: &BlockInfo) {
        self.each().for_each(|observer| observer.launch_ends(block));
    }
}
