//! Runs a collective for a world size: the tree to a program, by the recording that the compiled body also drives.

mod action;
mod expression;
mod movement;
mod values;

use crate::syntax::{Definition, Function};
use quadrille_compiler::diagnostic::{Diagnostic, SourceFile};
use quadrille_compiler::evaluate::{self, Head, LoopName, Recording, Run};
use quadrille_compiler::program::Program;
use quadrille_compiler::program::ProgramSetting;

/// The program of `definition` in a setting. All findings of the run otherwise.
pub(crate) fn program(
    definition: &Definition,
    source: &SourceFile,
    setting: &ProgramSetting,
) -> Result<Program, Vec<Diagnostic>> {
    let options = &definition.options;
    let params: Vec<&str> = options.params.iter().map(|param| param.name.as_str()).collect();
    let head = Head {
        name: &definition.name,
        name_loc: definition.name_loc,
        kind: options.kind,
        in_place: options.in_place,
        divisible: options.divisible,
        reproducible: options.reproducible,
        sizes: options.size_locs,
        params: &params,
        calls: !definition.functions.is_empty(),
        source,
    };
    evaluate::run(
        &head,
        setting,
        |size, recording| Evaluator::new(definition, recording).body(&definition.sizes[size as usize]),
        |recording| Evaluator::new(definition, recording).body(&definition.body).map(|_| ()),
    )
}

#[derive(Debug)]
struct Evaluator<'a> {
    definition: &'a Definition,
    recording: &'a mut Recording,
    /// The recording's number of each loop's name.
    loop_names: Vec<Option<LoopName>>,
    /// The frames of all open calls.
    slots: Vec<i64>,
    /// Where the current frame begins.
    base: usize,
}

impl<'a> Evaluator<'a> {
    fn new(definition: &'a Definition, recording: &'a mut Recording) -> Evaluator<'a> {
        let loop_names = vec![None; definition.loops.len()];
        Evaluator { definition, recording, loop_names, slots: Vec::new(), base: 0 }
    }

    /// Runs the fn of the collective, or of one of its sizes, for its value.
    fn body(&mut self, function: &'a Function) -> Run<i64> {
        self.slots.clear();
        self.slots.resize(function.frame as usize, 0);
        self.block_scalar(&function.body)
    }

    fn loop_name(&mut self, name: u32) -> LoopName {
        let (names, recording) = (&self.definition.loops, &mut self.recording);
        *self.loop_names[name as usize].get_or_insert_with(|| recording.loop_name(&names[name as usize]))
    }
}
