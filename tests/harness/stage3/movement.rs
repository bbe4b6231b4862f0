//! Ways of moving data that a program may be given.

use quadrille::Collective;
use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::options::{Given, Protocol, ScheduleOptions, Transport};

/// How a program's data moves, where it says nothing itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Movement {
    /// As the program says, or the compiler chooses.
    AsWritten,
    /// Copies by the rank that they go to.
    Get,
    /// As written, tile by tile.
    Tiles,
    Staged,
    Ll,
    Ll128,
    /// As written, in two instances.
    Instances,
    /// LL in three.
    LlInstances,
    /// As written, with two packs of each source in flight.
    Unrolled,
}

pub(crate) const MOVEMENTS: [Movement; 9] = [
    Movement::AsWritten,
    Movement::Get,
    Movement::Tiles,
    Movement::Staged,
    Movement::Ll,
    Movement::Ll128,
    Movement::Instances,
    Movement::LlInstances,
    Movement::Unrolled,
];

impl Movement {
    /// The collective with this movement; one that names its transport keeps it.
    pub(crate) fn of(self, collective: &Collective) -> Collective {
        fn given<T>(value: T) -> Option<Given<T>> {
            Some(Given { value, loc: Loc::default() })
        }
        let mut options = collective.options();
        let free = options.how.transport.is_none() && options.how.protocol.is_none();
        let lines = |options: &mut ScheduleOptions, protocol| {
            options.how.protocol = given(protocol);
            // A thread moves lines one after the other.
            options.unroll = None;
        };
        let packs = options.how.protocol.is_none_or(|given| given.value == Protocol::Simple);
        match self {
            Movement::Tiles if options.tile.is_none() => options.tile = given(16 << 10),
            Movement::Get if free => options.how.transport = given(Transport::Get),
            Movement::Staged if free => options.how.transport = given(Transport::Staged),
            Movement::Ll if free => lines(&mut options, Protocol::Ll),
            Movement::Ll128 if free => lines(&mut options, Protocol::Ll128),
            Movement::Unrolled if packs && options.unroll.is_none() => options.unroll = given(2),
            Movement::Instances => options.instances = given(2),
            Movement::LlInstances if free => {
                lines(&mut options, Protocol::Ll);
                options.instances = given(3);
            }
            _ => return collective.clone(),
        }
        Collective { schedules: vec![options], chosen: 0, ..collective.clone() }
    }
}

/// A collective's way of moving, in words.
pub(crate) fn describe(collective: &Collective) -> String {
    let ScheduleOptions { how, tile, instances, unroll, .. } = collective.options();
    let transport = how.transport.map(|given| given.value.name());
    let protocol = how.protocol.map(|given| given.value.name());
    let shape = [tile.map(|_| "tiles"), instances.map(|_| "instances"), unroll.map(|_| "unrolled")];
    let words: Vec<&str> = [transport, protocol].into_iter().chain(shape).flatten().collect();
    if words.is_empty() { "as written".to_owned() } else { words.join(", ") }
}
