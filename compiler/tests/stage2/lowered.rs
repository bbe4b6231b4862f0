//! Right programs are lowered to schedules that pass, whose text is read back, and that keep the promises of form.

use super::{findings, interpret, lowered, lowered_as, programs, told, ways};
use quadrille_compiler::lower::Lowered;
use quadrille_compiler::options::ScheduleOptions;
use quadrille_compiler::schedule::Schedule;
use quadrille_compiler::schedule::domain::Domain;
use quadrille_compiler::verify;

#[test]
fn right_programs_pass_and_their_text_is_read_back() {
    for (name, sketch) in programs::all() {
        for n in 1..=8 {
            let program = sketch.program(n).unwrap();
            for (way, options) in ways() {
                let schedule = lowered_as(&program, &options);
                let wrong = findings(&schedule, &program);
                assert!(wrong.is_empty(), "{name}, {n} ranks, {way}: {}\n{schedule}", told(&wrong));
                assert_eq!(Schedule::parse(&schedule.to_string()), Ok(schedule), "{name}, {n} ranks, {way}");
            }
        }
    }
}

#[test]
fn every_way_gives_what_the_program_gives_in_every_interleaving_tried() {
    for (name, sketch) in programs::all() {
        for n in 2..=5 {
            let program = sketch.program(n).unwrap();
            for (way, options) in ways() {
                let agrees = interpret::agrees(&lowered_as(&program, &options), &program, 6);
                assert_eq!(agrees, Ok(()), "{name}, {n} ranks, {way}");
            }
        }
    }
}

#[test]
fn one_rank_needs_no_wait_and_no_signal() {
    for (name, sketch) in programs::all() {
        let totals = lowered(&sketch.program(1).unwrap()).totals();
        assert_eq!((totals.waits, totals.signals), (0, 0), "{name}");
    }
}

#[test]
fn blocks_stay_below_the_cap_and_peers_beyond_it_share_them() {
    let sketch = programs::all().into_iter().find(|(name, _)| *name == "pairwise all-to-all").unwrap().1;
    let program = sketch.program(40).unwrap();
    let schedule = lowered(&program);
    assert_eq!(schedule.blocks.iter().map(Vec::len).collect::<Vec<_>>(), [32; 40]);
    assert!(findings(&schedule, &program).is_empty());
}

#[test]
fn a_world_without_symmetric_buffers_is_served_through_slots() {
    let program = programs::ring_all_reduce(0, 0).program(4).unwrap();
    let domain = Domain { symmetric: false, ..Domain::full_mesh(4) };
    let schedule =
        quadrille_compiler::lower::lower(&program, &domain, &ScheduleOptions::default()).unwrap().schedule;
    assert!(schedule.to_string().contains("slot r1.b0[0]"), "{schedule}");
    assert!(verify::schedule(schedule, &program, &domain).is_ok());
    let smuggled = verify::schedule(lowered(&program), &program, &domain).unwrap_err();
    assert!(told(&smuggled).contains("this world maps none [form]"), "{}", told(&smuggled));
}

#[test]
fn a_small_cap_is_kept_and_a_smaller_one_is_refused() {
    let sketch = programs::all().into_iter().find(|(name, _)| *name == "pairwise all-to-all").unwrap().1;
    let program = sketch.program(8).unwrap();
    for cap in 1..=8 {
        let domain = Domain { block_cap: cap, ..Domain::full_mesh(8) };
        let schedule = quadrille_compiler::lower::lower(&program, &domain, &ScheduleOptions::default())
            .unwrap()
            .schedule;
        assert!(schedule.blocks.iter().all(|blocks| blocks.len() == cap as usize));
        let narrower = Domain { block_cap: cap - 1, ..domain.clone() };
        let refused = verify::schedule(schedule.clone(), &program, &narrower).unwrap_err();
        assert!(told(&refused).contains("[residency]"), "{}", told(&refused));
        assert!(verify::schedule(schedule, &program, &domain).is_ok());
    }
}

#[test]
fn the_staged_ring_is_made_of_the_primitives_of_the_field() {
    use quadrille_compiler::schedule::{Action, Operand};
    // Sent; received, reduced and sent on; that and kept; received, kept and sent on; received and kept.
    let ring = |n: usize| {
        [vec!["m>s"], vec!["ms>s"; n - 2], vec!["ms>ms"], vec!["s>ms"; n - 2], vec!["s>m"]].concat()
    };
    let staged = ways().into_iter().find(|(way, _)| *way == "staged").unwrap().1;
    for n in 3..=8 {
        let program = programs::ring_all_reduce(0, 0).program(n).unwrap();
        let domain = Domain::full_mesh(n);
        let Lowered { schedule, savings } =
            quadrille_compiler::lower::lower(&program, &domain, &staged).unwrap();
        assert_eq!(savings.pruned, (n * (n - 2)) as usize);
        for (place, block) in schedule.places() {
            let ends = |operands: &[Operand]| -> String {
                operands.iter().map(|o| if o.message().is_some() { 's' } else { 'm' }).collect()
            };
            let moves: Vec<String> = block
                .steps
                .iter()
                .filter_map(|step| match &step.action {
                    Action::Move { sources, dests, .. } => Some(ends(sources) + ">" + &ends(dests)),
                    _ => None,
                })
                .collect();
            assert_eq!(moves, ring(n as usize), "{place} of {n} ranks");
        }
    }
}

#[test]
fn in_tiles_the_ways_up_and_down_a_tree_have_blocks_of_their_own() {
    let sketch =
        programs::all().into_iter().find(|(name, _)| *name == "tree all-reduce, in place").unwrap().1;
    let program = sketch.program(8).unwrap();
    let way = |name: &str| ways().into_iter().find(|(way, _)| *way == name).unwrap().1;
    let blocks = |name: &str| -> Vec<usize> {
        let schedule = lowered_as(&program, &way(name));
        assert!(findings(&schedule, &program).is_empty());
        schedule.blocks.iter().map(Vec::len).collect()
    };
    // Three chunks of each rank go up and come down. The root sends down what it has just made.
    assert_eq!(blocks("staged"), [3, 6, 6, 6, 6, 6, 6, 6]);
    // Where there is room for two alone, they are shared.
    assert_eq!(blocks("staged, 4 slots, 2 blocks"), [2; 8]);
    let ring = programs::ring_all_reduce(0, 0).program(8).unwrap();
    let of_ring = lowered_as(&ring, &way("staged"));
    assert!(of_ring.blocks.iter().all(|blocks| blocks.len() == 1), "a rank of a ring is never idle");
}
