//! The last accesses to memory: a cell for every four bytes that kernels touch, and one for a whole row that warps access
//! lane by lane.

use super::stamp::{MemoryId, NOBODY, Relation, Stamp};
use rustc_hash::FxHashMap;

/// The accesses to a cell that a new one has to be compared with.
#[derive(Clone, Copy, Debug)]
struct ShadowCell {
    write: Stamp,
    read: Stamp,
    /// Number of the list of further ones, plus 1.
    more: u32,
}

/// Cells of a row.
const ROW: usize = 32;
/// Rows of a page.
const ROWS: usize = 8;
/// Bytes of a row, and of a page.
const ROW_BYTES: u64 = 4 * ROW as u64;
const PAGE: u64 = ROW_BYTES * ROWS as u64;

/// Neighbouring cells.
#[derive(Clone, Debug)]
enum ShadowRow {
    /// Lanes of one instruction wrote all of it, one after another, and lanes of one instruction read it since.
    Even {
        write: Lined,
        read: Lined,
    },
    Cells(Box<[ShadowCell; ROW]>),
}

/// Accesses of neighbouring lanes to the cells of a row: the stamp is that of the row's first lane.
#[derive(Clone, Copy, Debug)]
struct Lined {
    stamp: Stamp,
    /// Of a lane.
    bytes: u8,
}

impl Lined {
    const NOBODY: Lined = Lined { stamp: NOBODY, bytes: 4 };

    /// The stamp of one of the cells.
    fn cell(&self, number: usize) -> Stamp {
        if self.stamp.epoch == 0 {
            return NOBODY;
        }
        let part = number as u16 & (self.stamp.how.cells() - 1);
        let lanes = self.stamp.lanes << (4 * number / usize::from(self.bytes));
        Stamp { lanes, how: self.stamp.how.part(part), ..self.stamp }
    }
}

impl ShadowRow {
    fn cells(&mut self) -> &mut [ShadowCell; ROW] {
        if let ShadowRow::Even { write, read } = self {
            let cell = |n: usize| ShadowCell { write: write.cell(n), read: read.cell(n), more: 0 };
            *self = ShadowRow::Cells(Box::new(std::array::from_fn(cell)));
        }
        match self {
            ShadowRow::Cells(cells) => cells,
            ShadowRow::Even { .. } => unreachable!("it has just been made cells of"),
        }
    }

    /// Returns true if this holds of all earlier accesses, and no cell has further ones.
    fn all(&self, over: impl Fn(&Stamp) -> bool) -> bool {
        match self {
            ShadowRow::Even { write, read } => over(&write.stamp) && over(&read.stamp),
            ShadowRow::Cells(cells) => cells.iter().all(|c| c.more == 0 && over(&c.write) && over(&c.read)),
        }
    }
}

#[derive(Clone, Debug)]
struct ShadowPage {
    rows: [ShadowRow; ROWS],
    /// A location that strong accesses use begins here.
    watched: bool,
}

/// The cells of all memories.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    memories: FxHashMap<MemoryId, Vec<Option<Box<ShadowPage>>>>,
    lists: Vec<Vec<Stamp>>,
    free: Vec<u32>,
}

/// The cells of one memory.
pub(crate) struct Cells<'s> {
    pages: &'s mut Vec<Option<Box<ShadowPage>>>,
    lists: &'s mut Vec<Vec<Stamp>>,
    free: &'s mut Vec<u32>,
}

impl Cells<'_> {
    /// Notes an access by one lane to `count` elements of `size` bytes, unless it races with an earlier one: that is
    /// returned then, with the offset of the element. `relation` tells how an earlier access stands to the new one,
    /// whose element has this offset.
    #[inline(always)]
    pub(crate) fn access(
        &mut self,
        offset: u64,
        (count, size): (u64, u64),
        mut stamp: Stamp,
        relation: &mut impl FnMut(&Stamp, &Stamp, u64) -> Relation,
    ) -> Result<(), (Stamp, u64)> {
        let how = stamp.how;
        let end = offset + count * size;
        let (mut at, mut element, mut part) = (offset, offset, 0);
        while at < end {
            let page = page(self.pages, at);
            // The cells of this page.
            let until = end.min((at / PAGE + 1) * PAGE);
            while at < until {
                let next = (at / 4 * 4 + 4).min(element + size);
                stamp.bytes = if next - at == 4 { 15 } else { ((1 << (next - at)) - 1) << (at % 4) };
                stamp.how = how.part(part);
                let row = &mut page.rows[(at % PAGE / ROW_BYTES) as usize];
                let cell = &mut row.cells()[(at % ROW_BYTES / 4) as usize];
                let mut relation = |old: &Stamp, new: &Stamp| relation(old, new, element);
                let noted = if how.writes() {
                    write(cell, &stamp, self.lists, self.free, &mut relation)
                } else {
                    read(cell, &stamp, self.lists, self.free, &mut relation)
                };
                noted.map_err(|earlier| (earlier, element))?;
                (at, part) = (next, part + 1);
                if at == element + size {
                    (element, part) = (at, 0);
                }
            }
        }
        Ok(())
    }
}

/// Accesses of lanes to whole cells that lie one after another.
#[derive(Clone, Copy)]
pub(crate) struct LaneRun {
    /// Offset at which lane 0 would begin; a lane's access is aligned to its bytes.
    pub(crate) offset: u64,
    /// Of a lane.
    pub(crate) bytes: u64,
    /// Of an element.
    pub(crate) size: u64,
    /// Of the first lane, and weak.
    pub(crate) stamp: Stamp,
    /// The lanes after the last one.
    pub(crate) end: u32,
    /// Moments up to `settled` happened before everything (see [`Stamp::epoch`]), and so did the moment `known` by this path.
    pub(crate) settled: u32,
    pub(crate) known: u32,
}

impl Cells<'_> {
    /// Notes the accesses of lanes from `lane` on, up to one that needs a closer look, which is returned.
    pub(crate) fn run(&mut self, run: &LaneRun, mut lane: u32) -> u32 {
        let LaneRun { offset, bytes, size, mut stamp, end, settled, known } = *run;
        let over = |old: &Stamp| old.epoch <= settled || old.epoch == known && old.path == stamp.path;
        let (each, parts, how) = ((bytes / 4) as usize, size / 4 - 1, stamp.how);
        let writes = how.writes();
        stamp.bytes = 15;
        while lane < end {
            let at = offset.wrapping_add(u64::from(lane) * bytes);
            let row = &mut page(self.pages, at).rows[(at % PAGE / ROW_BYTES) as usize];
            let lanes = (ROW_BYTES / bytes) as u32;
            if at.is_multiple_of(ROW_BYTES) && end - lane >= lanes && row.all(over) {
                stamp.lanes = 1 << lane;
                stamp.how = how;
                let now = Lined { stamp, bytes: bytes as u8 };
                match row {
                    _ if writes => *row = ShadowRow::Even { write: now, read: Lined::NOBODY },
                    ShadowRow::Even { read, .. } => *read = now,
                    ShadowRow::Cells(cells) => read_all(cells, &now),
                }
                lane += lanes;
                continue;
            }
            let first = (at % ROW_BYTES / 4) as usize;
            for cells in row.cells()[first..].chunks_exact_mut(each).take((end - lane) as usize) {
                if !cells.iter().all(|cell| cell.more == 0 && over(&cell.write) && over(&cell.read)) {
                    return lane;
                }
                stamp.lanes = 1 << lane;
                for (part, cell) in cells.iter_mut().enumerate() {
                    stamp.how = how.part((part as u64 & parts) as u16);
                    if writes {
                        (cell.write, cell.read.epoch) = (stamp, 0);
                    } else {
                        cell.read = stamp;
                    }
                }
                lane += 1;
            }
        }
        lane
    }
}

fn read_all(cells: &mut [ShadowCell; ROW], read: &Lined) {
    for (number, cell) in cells.iter_mut().enumerate() {
        cell.read = read.cell(number);
    }
}

/// The page of a byte.
#[inline(always)]
fn page(pages: &mut Vec<Option<Box<ShadowPage>>>, at: u64) -> &mut ShadowPage {
    let number = (at / PAGE) as usize;
    if number >= pages.len() {
        pages.resize(number + 1, None);
    }
    pages[number].get_or_insert_with(|| {
        let row = |_| ShadowRow::Even { write: Lined::NOBODY, read: Lined::NOBODY };
        Box::new(ShadowPage { rows: std::array::from_fn(row), watched: false })
    })
}

impl Shadow {
    pub(crate) fn cells(&mut self, memory: MemoryId) -> Cells<'_> {
        let pages = self.memories.entry(memory).or_default();
        Cells { pages, lists: &mut self.lists, free: &mut self.free }
    }

    /// Returns true if a strong access has used a location near these bytes.
    pub(crate) fn watched(&self, memory: MemoryId, offset: u64, bytes: u64) -> bool {
        let Some(pages) = self.memories.get(&memory) else { return false };
        (offset / PAGE..=(offset + bytes.max(1) - 1) / PAGE)
            .any(|number| pages.get(number as usize).is_some_and(|p| p.as_ref().is_some_and(|p| p.watched)))
    }

    /// A strong access has used a location at this byte.
    pub(crate) fn watch(&mut self, memory: MemoryId, offset: u64) {
        page(self.cells(memory).pages, offset).watched = true;
    }

    /// All that has been accessed so far happened before all that follows (as stamps say themselves).
    pub(crate) fn settle(&mut self) {
        for page in self.memories.values_mut().flatten().flatten() {
            page.watched = false;
        }
    }

    /// The memory is gone.
    pub(crate) fn forget(&mut self, memory: MemoryId) {
        self.memories.remove(&memory);
    }
}

fn empty(stamp: &Stamp) -> bool {
    stamp.epoch == 0
}

#[inline]
fn write(
    cell: &mut ShadowCell,
    stamp: &Stamp,
    lists: &mut Vec<Vec<Stamp>>,
    free: &mut Vec<u32>,
    relation: &mut impl FnMut(&Stamp, &Stamp) -> Relation,
) -> Result<(), Stamp> {
    let mut kept = None;
    for old in [&mut cell.write, &mut cell.read] {
        if empty(old) || old.bytes & stamp.bytes == 0 {
            continue;
        }
        match relation(old, stamp) {
            Relation::Race => return Err(*old),
            Relation::Settled => *old = NOBODY,
            Relation::Before if superfluous(old, stamp) => *old = NOBODY,
            _ => {}
        }
    }
    if cell.more != 0 {
        let list = &mut lists[cell.more as usize - 1];
        let mut race = None;
        list.retain(|old| {
            if old.bytes & stamp.bytes == 0 {
                return true;
            }
            match relation(old, stamp) {
                Relation::Race => {
                    race = race.or(Some(*old));
                    true
                }
                Relation::Settled => false,
                Relation::Before => !superfluous(old, stamp),
                Relation::Apart => true,
            }
        });
        if let Some(race) = race {
            return Err(race);
        }
    }
    if !empty(&cell.write) {
        kept = Some(cell.write);
    }
    cell.write = *stamp;
    if let Some(kept) = kept {
        push(cell, kept, lists, free);
    }
    settle(cell, lists, free);
    Ok(())
}

#[inline]
fn read(
    cell: &mut ShadowCell,
    stamp: &Stamp,
    lists: &mut Vec<Vec<Stamp>>,
    free: &mut Vec<u32>,
    relation: &mut impl FnMut(&Stamp, &Stamp) -> Relation,
) -> Result<(), Stamp> {
    let old = &cell.write;
    if !empty(old) && old.bytes & stamp.bytes != 0 && relation(old, stamp) == Relation::Race {
        return Err(*old);
    }
    if cell.more != 0 {
        let racing = |old: &&Stamp| {
            old.how.writes() && old.bytes & stamp.bytes != 0 && relation(old, stamp) == Relation::Race
        };
        if let Some(race) = lists[cell.more as usize - 1].iter().find(racing) {
            return Err(*race);
        }
    }
    // A poll mostly follows others of its moment.
    if empty(&cell.read) {
        cell.read = *stamp;
        return Ok(());
    }
    if merge(&mut cell.read, stamp) {
        return Ok(());
    }
    if cell.more != 0 {
        let list = &mut lists[cell.more as usize - 1];
        if list.iter_mut().any(|old| !old.how.writes() && merge(old, stamp)) {
            return Ok(());
        }
    }
    if replaces(&cell.read, stamp, relation) {
        cell.read = *stamp;
        return Ok(());
    }
    if cell.more != 0 {
        lists[cell.more as usize - 1].retain(|old| old.how.writes() || !replaces(old, stamp, relation));
    }
    push(cell, *stamp, lists, free);
    Ok(())
}

/// Returns true if both are accesses of one kind to the same bytes, in the same stretch of a warp's work.
fn same(old: &Stamp, new: &Stamp) -> bool {
    old.epoch == new.epoch && old.how == new.how && old.bytes == new.bytes && old.path == new.path
}

fn merge(old: &mut Stamp, new: &Stamp) -> bool {
    let same = same(old, new);
    if same {
        old.lanes |= new.lanes;
        old.site = new.site;
    }
    same
}

/// Returns true if everything that races with an access before a new one also races with the new one.
fn superfluous(old: &Stamp, new: &Stamp) -> bool {
    old.bytes & !new.bytes == 0 && (!new.how.strong() || old.how.0 >> 2 == new.how.0 >> 2)
}

/// Returns true if a read makes an earlier one superfluous.
fn replaces(old: &Stamp, new: &Stamp, relation: &mut impl FnMut(&Stamp, &Stamp) -> Relation) -> bool {
    match relation(old, new) {
        Relation::Settled => true,
        Relation::Before => {
            let others = old.epoch == new.epoch && old.lanes & !new.lanes != 0;
            !others && old.path == new.path && superfluous(old, new)
        }
        Relation::Apart | Relation::Race => false,
    }
}

fn push(cell: &mut ShadowCell, stamp: Stamp, lists: &mut Vec<Vec<Stamp>>, free: &mut Vec<u32>) {
    if cell.more == 0 {
        cell.more = free.pop().unwrap_or_else(|| {
            lists.push(Vec::new());
            lists.len() as u32
        });
    }
    let list = &mut lists[cell.more as usize - 1];
    if !list.iter_mut().any(|old| merge(old, &stamp)) {
        list.push(stamp);
    }
}

/// Gives back an empty list.
fn settle(cell: &mut ShadowCell, lists: &[Vec<Stamp>], free: &mut Vec<u32>) {
    if cell.more != 0 && lists[cell.more as usize - 1].is_empty() {
        free.push(cell.more);
        cell.more = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::stamp::{AccessFlags, Path};
    use super::*;

    const AT: MemoryId = MemoryId::Shared(0);

    fn stamp(epoch: u32, lanes: u32, kind: u16, bytes: u64) -> Stamp {
        Stamp {
            epoch,
            lanes,
            site: epoch,
            how: AccessFlags::new(kind, false, 0, bytes),
            bytes: 0,
            path: Path::OWN,
        }
    }

    /// Epochs below 10 happened before those from 10 on, and nothing else before anything.
    fn relation(old: &Stamp, new: &Stamp, _: u64) -> Relation {
        let same = old.epoch == new.epoch && old.lanes == new.lanes;
        if same || old.epoch < 10 && new.epoch >= 10 {
            Relation::Before
        } else if old.how.writes() || new.how.writes() {
            Relation::Race
        } else {
            Relation::Apart
        }
    }

    fn go(shadow: &mut Shadow, at: u64, bytes: u64, epoch: u32, kind: u16) -> Option<u32> {
        let noted = shadow.cells(AT).access(at, (1, bytes), stamp(epoch, 1, kind, bytes), &mut relation);
        noted.err().map(|(old, _)| old.epoch)
    }

    #[test]
    fn writes_race_with_unordered_accesses_to_the_same_bytes_only() {
        let mut shadow = Shadow::default();
        assert_eq!(go(&mut shadow, 2, 1, 1, AccessFlags::WRITE), None);
        assert_eq!(go(&mut shadow, 1, 1, 2, AccessFlags::WRITE), None);
        assert_eq!(go(&mut shadow, 0, 2, 3, AccessFlags::READ), Some(2));
        assert_eq!(go(&mut shadow, 2, 2, 4, AccessFlags::READ), Some(1));
        assert_eq!(go(&mut shadow, 0, 16, 11, AccessFlags::WRITE), None);
        assert_eq!(go(&mut shadow, 3, 1, 12, AccessFlags::READ), Some(11));
        assert_eq!(go(&mut shadow, 12, 4, 12, AccessFlags::READ), Some(11));
        assert_eq!(go(&mut shadow, 16, 4, 12, AccessFlags::READ), None);
    }

    #[test]
    fn every_reader_is_remembered_until_a_later_write() {
        let mut shadow = Shadow::default();
        for epoch in 1..5 {
            assert_eq!(go(&mut shadow, 4096, 4, epoch, AccessFlags::READ), None);
        }
        // The first of those that race is told.
        assert_eq!(go(&mut shadow, 4096, 4, 5, AccessFlags::WRITE), Some(1));
        assert_eq!(go(&mut shadow, 4096, 4, 10, AccessFlags::WRITE), None);
        assert!(shadow.lists.iter().all(Vec::is_empty) && shadow.free.len() == shadow.lists.len());
        assert_eq!(go(&mut shadow, 4096, 4, 11, AccessFlags::READ), Some(10));
        shadow.forget(AT);
        assert_eq!(go(&mut shadow, 4096, 4, 11, AccessFlags::READ), None);
    }

    #[test]
    fn lanes_of_one_moment_share_a_stamp() {
        let mut shadow = Shadow::default();
        for lane in 0..32 {
            shadow
                .cells(AT)
                .access(0, (1, 4), stamp(1, 1 << lane, AccessFlags::READ, 4), &mut relation)
                .unwrap();
        }
        assert!(shadow.lists.is_empty());
        let write = stamp(1, 1, AccessFlags::WRITE, 4);
        let (race, _) = shadow.cells(AT).access(0, (1, 4), write, &mut relation).unwrap_err();
        assert_eq!(race.lanes, u32::MAX);
    }
}
