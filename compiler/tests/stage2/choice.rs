//! Which protocol a schedule gets that leaves it open.

use super::programs;
use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::lower::{self, ChosenProtocol, Lowered};
use quadrille_compiler::options::{Given, Protocol, ScheduleOptions, StatementOptions, Transport};
use quadrille_compiler::program::Program;
use quadrille_compiler::schedule::domain::Domain;

fn given<T>(value: T) -> Option<Given<T>> {
    Some(Given { value, loc: Loc::default() })
}

/// What is chosen, and the FIFOs of each protocol.
fn chosen(
    program: &Program,
    symmetric: bool,
    options: &ScheduleOptions,
) -> (Option<ChosenProtocol>, [usize; 3]) {
    let domain = Domain { symmetric, ..Domain::full_mesh(program.shape.ranks) };
    let Lowered { schedule, savings } = lower::lower(program, &domain, options).unwrap();
    (savings.chosen, schedule.totals().connections)
}

fn up_to(bytes: u64) -> ScheduleOptions {
    ScheduleOptions { up_to: given(bytes), ..ScheduleOptions::default() }
}

#[test]
fn small_messages_get_lines_and_large_ones_do_not() {
    let ring = programs::ring_all_reduce(0, 0).program(8).unwrap();
    for symmetric in [true, false] {
        let mut last = Protocol::Ll;
        for bytes in (10..30).map(|power| 1 << power) {
            let (choice, [simple, ll, ll128]) = chosen(&ring, symmetric, &up_to(bytes));
            let ChosenProtocol { protocol, bytes: of } = choice.unwrap();
            assert_eq!((of, ll128), (bytes, 0));
            assert_eq!(ll > 0, protocol == Protocol::Ll);
            assert_eq!(simple > 0, protocol == Protocol::Simple && !symmetric);
            assert!(protocol == last || protocol == Protocol::Simple, "LL again from {bytes} bytes on");
            last = protocol;
        }
        assert_eq!(last, Protocol::Simple);
        let first = chosen(&ring, symmetric, &up_to(1 << 10)).0.unwrap();
        assert_eq!(first.protocol, Protocol::Ll);
    }
}

#[test]
fn what_is_said_or_unbounded_is_not_chosen() {
    let ring = programs::ring_all_reduce(0, 0).program(8).unwrap();
    let how = |transport, protocol| StatementOptions { transport, protocol };
    for options in [
        ScheduleOptions::default(),
        ScheduleOptions { how: how(None, given(Protocol::Simple)), ..up_to(1 << 10) },
        ScheduleOptions { how: how(None, given(Protocol::Ll128)), ..up_to(1 << 10) },
        ScheduleOptions { how: how(given(Transport::Put), None), ..up_to(1 << 10) },
    ] {
        assert_eq!(chosen(&ring, true, &options).0, None, "{options:?}");
    }
    let mut said = ring;
    said.statements[0].how = how(given(Transport::Get), None);
    assert_eq!(chosen(&said, true, &up_to(1 << 10)).0, None);
}

#[test]
fn what_cannot_be_carried_out_is_not_chosen() {
    // Lines are moved from at most 64 places at once.
    let wide = programs::one_shot().program(72).unwrap();
    let (choice, connections) = chosen(&wide, true, &up_to(1 << 10));
    assert_eq!((choice.unwrap().protocol, connections), (Protocol::Simple, [0; 3]));
    let narrow = programs::one_shot().program(8).unwrap();
    assert_eq!(chosen(&narrow, true, &up_to(1 << 10)).0.unwrap().protocol, Protocol::Ll);
}
