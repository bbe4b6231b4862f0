//! The symmetric heap: one flat range of addresses, of which each rank has an equal part. The same place is `stride` bytes
//! further for the next rank, and every device of the world reaches every address.

use crate::driver::api::symbol;
use crate::driver::{Context, CudaError, Device, Driver, Mapping, MulticastObject, Physical, Range};
use crate::gpus::Place;
use quadrille_compiler::program::ids::Rank;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Heap {
    /// The memory that begins at an address.
    mapped: BTreeMap<u64, Mapping>,
    places: FreePlaces,
    devices: Vec<Device>,
    stride: u64,
    range: Arc<Range>,
}

/// The free places of each rank's part.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FreePlaces {
    /// The bytes of each, by its begin.
    rooms: BTreeMap<u64, u64>,
    /// Every place begins at a multiple of this.
    granularity: u64,
}

impl Heap {
    /// For `ranks` ranks on the devices, with room for all their memory in each rank's part.
    pub(super) fn new(driver: &Driver, devices: Vec<Device>, ranks: u32) -> Result<Heap, CudaError> {
        let (mut granularity, mut memory) = (1, 1);
        for device in &devices {
            granularity = granularity.max(Physical::granularity(device)?);
            memory = memory.max(device.memory()?);
        }
        if devices.len() > 1 && !driver.lacks(symbol::multicast_granularity) {
            // All memory may be bound to a multicast object; where there are none it makes no difference.
            granularity = granularity.max(MulticastObject::granularity(driver, &devices).unwrap_or(1));
        }
        // Where ranks share a device they share its memory.
        let sharing = u64::from(ranks).div_ceil(devices.len().max(1) as u64);
        let stride = (memory / sharing).max(granularity).next_power_of_two();
        let range = Arc::new(Range::new(driver, u64::from(ranks) * stride, granularity)?);
        let places = FreePlaces { rooms: BTreeMap::from([(0, stride)]), granularity };
        Ok(Heap { mapped: BTreeMap::new(), places, devices, stride, range })
    }

    /// Reserves the first place that has room for `bytes` bytes.
    pub(super) fn reserve(&mut self, bytes: u64) -> Option<Place> {
        self.places.reserve(bytes)
    }

    /// Gives a place back.
    pub(super) fn release(&mut self, place: Place, bytes: u64) {
        self.places.release(place, bytes);
    }

    /// Makes a rank's memory at a place, on the device of the context.
    pub(super) fn alloc(
        &mut self,
        (rank, Place(place)): (Rank, Place),
        context: &Arc<Context>,
        bytes: u64,
        label: &str,
    ) -> Result<u64, CudaError> {
        let memory = Arc::new(Physical::new(context, self.places.rounded(bytes).unwrap_or(u64::MAX), label)?);
        let address = self.range.base() + u64::from(rank.0) * self.stride + place;
        let mapping = Mapping::new(&self.range, address, &memory, &self.devices)?;
        self.mapped.insert(address, mapping);
        Ok(address)
    }

    /// Unmaps and frees what begins at the address.
    pub(super) fn free(&mut self, address: u64) {
        self.mapped.remove(&address);
    }

    /// Leaves all memory where it is, for ever.
    pub(super) fn leave(&mut self) {
        std::mem::forget(std::mem::take(&mut self.mapped));
    }

    /// The memory that begins at the address.
    pub(super) fn memory(&self, address: u64) -> Option<&Arc<Physical>> {
        self.mapped.get(&address)?.memory()
    }

    /// Returns the rank in whose part an address lies.
    pub(super) fn rank(&self, address: u64) -> Option<usize> {
        Some((address.checked_sub(self.range.base())? / self.stride) as usize)
    }
}

impl FreePlaces {
    /// The bytes that a place of `bytes` bytes takes; `None` where that is more than there can be.
    fn rounded(&self, bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(self.granularity)
    }

    /// Takes the first place that has room for `bytes` bytes.
    fn reserve(&mut self, bytes: u64) -> Option<Place> {
        let need = self.rounded(bytes)?;
        let (&begin, &room) = self.rooms.iter().find(|&(_, &room)| room >= need)?;
        self.rooms.remove(&begin);
        if room > need {
            self.rooms.insert(begin + need, room - need);
        }
        Some(Place(begin))
    }

    /// Gives a place back, and joins it with free neighbours.
    fn release(&mut self, Place(mut begin): Place, bytes: u64) {
        let Some(mut room) = self.rounded(bytes) else { return };
        if let Some(after) = self.rooms.remove(&(begin + room)) {
            room += after;
        }
        if let Some((&before, &size)) = self.rooms.range(..begin).next_back()
            && before + size == begin
        {
            self.rooms.remove(&before);
            (begin, room) = (before, room + size);
        }
        self.rooms.insert(begin, room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_joined() {
        let (grain, stride) = (4096, 1 << 20);
        let mut free = FreePlaces { rooms: BTreeMap::from([(0, stride)]), granularity: grain };
        let all = free.clone();
        let places: Vec<Place> = (0..4).map(|_| free.reserve(grain + 1).unwrap()).collect();
        assert_eq!(places.iter().map(|place| place.0).collect::<Vec<_>>(), [0, 2, 4, 6].map(|n| n * grain));
        // Out of order, so that both neighbours are joined.
        for at in [1, 3, 2] {
            free.release(places[at], grain + 1);
        }
        assert_eq!(free.reserve(3 * grain).unwrap(), Place(2 * grain));
        free.release(Place(2 * grain), 3 * grain);
        free.release(places[0], grain + 1);
        assert_eq!(free, all);
        assert_eq!(free.reserve(stride + 1), None);
        assert_eq!(free.reserve(u64::MAX), None);
    }
}
