//! The other ways in which a program can be called: in place or out of place, whichever it is not written for, with
//! every root, with every schedule, and with every value of its parameters.

use crate::files::{kernels, runs};
use libtest_mimic::{Failed, Trial};
use quadrille::runtime::nvrtc;
use quadrille::{Collective, DType, RedOp, World};
use quadrille_testing::{Pattern, TestMessage};

const RANKS: u32 = 4;
const COUNTS: [u64; 3] = [0, 7, 1000];

pub(crate) fn trials(programs: &[Collective]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for collective in programs.iter().filter(|c| runs(c, RANKS)) {
        let mut variants = Vec::new();
        let otherwise = collective.called(!collective.in_place);
        if runs(&otherwise, RANKS) && otherwise.program(RANKS).is_ok() {
            variants
                .push((if otherwise.in_place { "in_place" } else { "out_of_place" }.to_owned(), otherwise));
        }
        if collective.kind.rooted() {
            let roots = (0..RANKS).filter(|&root| root != collective.root);
            variants.extend(roots.map(|root| (format!("root_{root}"), collective.rooted(root))));
        }
        for schedule in 1..collective.schedules.len() {
            variants.push((format!("schedule_{schedule}"), collective.with_schedule(schedule)));
        }
        for values in collective.combinations() {
            let mut other = collective.clone();
            let mut name = "with".to_owned();
            for (param, &value) in other.params.iter_mut().zip(&values) {
                param.value = value;
                name.push_str(&format!("_{}_{value}", param.name));
            }
            if other.params != collective.params && runs(&other, RANKS) {
                variants.push((name, other));
            }
        }
        for (name, variant) in variants {
            let name = format!("variant::{}::{name}", collective.name);
            trials.push(Trial::test(name, move || compute(&variant)));
        }
    }
    trials
}

fn compute(collective: &Collective) -> Result<(), Failed> {
    nvrtc::provide(nvrtc::announce)?;
    let world = World::virtual_gpus(RANKS)?;
    world.keep_kernels(kernels());
    let session = world.session()?;
    for count in COUNTS {
        let message = TestMessage::new(&collective.program(RANKS)?, count, DType::Bf16);
        for shift in 0..RANKS {
            let inputs = message.inputs(Pattern::OneHot { shift });
            let run = session.run(collective, DType::Bf16, RedOp::Sum, &inputs)?;
            let comparison = message.compare(&message.reference(RedOp::Sum, &inputs), &run.outputs);
            if comparison.wrong > 0 {
                return Err(format!("count {count}, shift {shift}: {comparison}").into());
            }
        }
    }
    Ok(())
}
