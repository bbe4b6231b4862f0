//! A collective: a name, the world sizes it is written for, and its program for any world size.

use crate::body::{Body, Param};
use crate::diagnostic::{Check, Diagnostic, Diagnostics, Loc, SourceFile};
use crate::emit::{self, Cuda};
use crate::evaluate::{self, aliasing};
use crate::kernel::widths::Widths;
use crate::kernel::{self, Kernel};
use crate::lower::{self, Lowered, Savings};
use crate::names::UnknownName;
use crate::options::{self, ScheduleOptions};
use crate::program::dtype::{DType, RedOp};
use crate::program::kind::Kind;
use crate::program::transport;
use crate::program::{Program, ProgramSetting};
use crate::report::Report;
use crate::schedule::Schedule;
use crate::schedule::domain::{Domain, LARGEST_BLOCK_CAP, LARGEST_WORLD};
use crate::values::Contents;
use crate::values::scale;
use crate::verified::Verified;
use crate::verify::{self, SettingFindings};
use std::fmt;
use std::sync::Arc;

/// The source of a program: a body that the evaluator runs, or an imported plan.
pub trait Evaluate: Send + Sync {
    /// Makes the program for a setting, or returns all findings of the run at once.
    fn program(&self, setting: &ProgramSetting) -> Result<Program, Vec<Diagnostic>>;

    /// Returns the schedule that the source itself gives for a domain, with what was saved of it; `None` where lowering
    /// makes the schedule.
    fn schedule(
        &self,
        setting: &ProgramSetting,
        program: &Program,
        domain: &Domain,
    ) -> Option<LoweringResult> {
        let _ = (setting, program, domain);
        None
    }

    /// Returns why calls with an operator are refused, for sources that fix how they combine.
    fn refuses(&self, op: RedOp) -> Option<Diagnostic> {
        let _ = op;
        None
    }

    /// Returns the source of the program called in place, or out of place; `None` where that program follows from this
    /// one.
    fn called(&self, in_place: bool) -> Option<Arc<dyn Evaluate>> {
        let _ = in_place;
        None
    }
}

/// The outcome of lowering: a schedule with its savings, or the reasons why there is none.
pub type LoweringResult = Result<Lowered, Vec<Diagnostic>>;

/// A collective, as `#[collective]` leaves it behind or as the command line reads it.
#[derive(Clone)]
pub struct Collective {
    /// The fn's name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// One buffer named `data` instead of `input` and `output`.
    pub in_place: bool,
    /// The world sizes listed in the attribute, ascending; never empty for a collective that was parsed.
    pub ranks: Vec<u32>,
    /// Refuses other world sizes, and other values of parameters, than those listed.
    pub only: bool,
    /// The root of a rooted kind; else 0.
    pub root: u32,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Its `#[schedule(..)]` attributes, in order.
    pub schedules: Vec<ScheduleOptions>,
    /// The index of the one in use; 0 where there is none.
    pub chosen: usize,
    /// The text that locations point into.
    pub source: SourceFile,
    /// The location of the fn's name.
    pub name_loc: Loc,
    /// The source of its programs.
    pub evaluate: Arc<dyn Evaluate>,
}

impl Collective {
    /// Makes the collective of a body. `source` is the text that the body's locations point into.
    pub fn new(body: Body, source: SourceFile) -> Collective {
        let head = body.head.clone();
        Collective {
            name: head.name,
            kind: head.kind,
            in_place: head.in_place,
            ranks: head.ranks,
            only: head.only,
            root: head.root,
            params: head.params,
            schedules: head.schedules,
            chosen: 0,
            source: source.clone(),
            name_loc: head.name_loc,
            evaluate: Arc::new(EvaluatedBody { body, source }),
        }
    }

    /// Returns the collective with another root.
    pub fn rooted(&self, root: u32) -> Collective {
        Collective { root, ..self.clone() }
    }

    /// Returns the collective with another value of a parameter.
    ///
    /// # Errors
    /// If it has no parameter of the name.
    pub fn with_param(&self, name: &str, value: i64) -> Result<Collective, UnknownName> {
        let mut collective = self.clone();
        let Some(param) = collective.params.iter_mut().find(|param| param.name == name) else {
            let known: Vec<&str> = self.params.iter().map(|param| param.name.as_str()).collect();
            return Err(UnknownName { given: name.to_owned(), what: "parameter", known: known.join(", ") });
        };
        param.value = value;
        Ok(collective)
    }

    /// Returns the collective with the schedule that serves messages of `bytes` bytes: the larger of one rank's input and
    /// output.
    pub fn for_message(&self, bytes: u64) -> Collective {
        let sizes = options::sizes(&self.schedules).unwrap_or_default();
        let chosen = sizes.iter().position(|sizes| sizes.contains(bytes)).unwrap_or(self.chosen);
        Collective { chosen, ..self.clone() }
    }

    /// Returns the collective with its `index`-th schedule in use.
    pub fn with_schedule(&self, index: usize) -> Collective {
        Collective { chosen: index, ..self.clone() }
    }

    /// Returns the collective as called in place, with one buffer, or out of place, with two. One that is written in
    /// place runs out of place too. One that is written out of place has to be proved for one buffer;
    /// [`Collective::program`] does that.
    pub fn called(&self, in_place: bool) -> Collective {
        if in_place == self.in_place {
            return self.clone();
        }
        let otherwise = || -> Arc<dyn Evaluate> { Arc::new(Otherwise(Arc::clone(&self.evaluate))) };
        let evaluate = self.evaluate.called(in_place).unwrap_or_else(otherwise);
        Collective { in_place, evaluate, ..self.clone() }
    }

    /// Returns the domain that the collective is proved for where no world is given: a full mesh, with room for as many
    /// thread blocks as its schedules ask for.
    pub fn domain(&self, ranks: u32) -> Domain {
        let domain = Domain::full_mesh(ranks);
        let asked = self.schedules.iter().filter_map(|options| options.blocks).map(|given| given.value);
        let block_cap = asked.max().unwrap_or(0).clamp(domain.block_cap, LARGEST_BLOCK_CAP);
        Domain { block_cap, ..domain }
    }

    /// Returns the options of the schedule in use.
    pub fn options(&self) -> ScheduleOptions {
        self.schedules.get(self.chosen).cloned().unwrap_or_default()
    }

    /// Returns the setting for `ranks` ranks, with the collective's root and parameters.
    pub fn setting(&self, ranks: u32) -> ProgramSetting {
        ProgramSetting {
            ranks,
            root: self.root,
            params: self.params.iter().map(|param| param.value).collect(),
        }
    }

    /// Makes the program for `ranks` ranks and proves it by stage 1.
    pub fn program(&self, ranks: u32) -> Result<Program, Diagnostics> {
        self.evaluated(&self.setting(ranks)).map_err(|list| self.wrong(list))
    }

    fn evaluated(&self, setting: &ProgramSetting) -> Result<Program, Vec<Diagnostic>> {
        self.judged(setting).map(|(program, _)| program)
    }

    /// Makes the program and proves it by stage 1. Returns it with the contents of its chunks.
    fn judged(&self, setting: &ProgramSetting) -> Result<(Program, Contents), Vec<Diagnostic>> {
        let refused = self.refused(setting);
        if !refused.is_empty() {
            return Err(refused);
        }
        let program = self.evaluate.program(setting)?;
        let contents = verify::judged(&program)?;
        let under = |options| verify::reproducible::under(&program, &contents, options);
        match self.schedules.iter().find_map(under) {
            Some(finding) => Err(vec![finding]),
            None => Ok((program, contents)),
        }
    }

    /// Proves the program for `ranks` ranks by stage 1 and reports on it.
    pub fn report(&self, ranks: u32) -> Result<Report, Diagnostics> {
        let (program, contents) = self.judged(&self.setting(ranks)).map_err(|list| self.wrong(list))?;
        Ok(Report::of(&program, &contents, &self.options()))
    }

    /// Returns why the collective does not run in a setting; nothing where it does.
    fn refused(&self, setting: &ProgramSetting) -> Vec<Diagnostic> {
        let ProgramSetting { ranks, root, .. } = *setting;
        let refuse = |message: String, note: String| {
            Diagnostic::new(Check::Requirement, self.name_loc, message).note(note)
        };
        let mut list = Vec::new();
        let message = || format!("`{}` does not run on {ranks} ranks", self.name);
        if !(1..=LARGEST_WORLD).contains(&ranks) {
            list.push(refuse(message(), format!("a world has 1 to {LARGEST_WORLD} ranks")));
        } else if self.only && !self.ranks.contains(&ranks) {
            let sizes: Vec<_> = self.ranks.iter().map(u32::to_string).collect();
            list.push(
                refuse(message(), format!("it is written for world sizes {} `only`", sizes.join(", ")))
                    .help("take one of these, or leave out `only` where the program is right for others"),
            );
        } else if root >= ranks {
            let note = format!("there is no rank {root} among {ranks}");
            list.push(refuse(format!("`{}` cannot have root {root}", self.name), note));
        }
        for param in self.params.iter().filter(|param| self.only && !param.values.contains(&param.value)) {
            let values: Vec<_> = param.values.iter().map(i64::to_string).collect();
            list.push(refuse(
                format!("`{}` does not run with {} = {}", self.name, param.name, param.value),
                format!("it is written for {} = {} `only`", param.name, values.join(", ")),
            ));
        }
        list
    }

    /// Lowers the program for a domain and proves the schedule by stage 2, for operators that do not scale.
    pub fn verified(&self, domain: &Domain) -> Result<Verified<Schedule>, Diagnostics> {
        self.prove(domain, RedOp::Sum).map(|(_, schedule)| schedule)
    }

    /// Counts what lowering saves on a domain: waits that others imply, tasks that join others.
    pub fn savings(&self, domain: &Domain) -> Result<Savings, Diagnostics> {
        let options = self.options();
        let program = transport::place(self.program(domain.ranks)?, &options);
        let lowered = self.lower(&program, domain, &options);
        lowered.map(|lowered| lowered.savings).map_err(|list| self.wrong(list))
    }

    /// Returns the schedule of a program, unproved: the source's own, or the one that lowering makes.
    fn lower(&self, program: &Program, domain: &Domain, options: &ScheduleOptions) -> LoweringResult {
        let given = self.evaluate.schedule(&self.setting(domain.ranks), program, domain);
        given.unwrap_or_else(|| lower::lower(program, domain, options))
    }

    /// Builds the kernel for a domain, element type and operator, and proves that it is the verified schedule.
    pub fn kernel(&self, domain: &Domain, dtype: DType, op: RedOp) -> Result<Verified<Kernel>, Diagnostics> {
        self.kernel_in(domain, dtype, op, Widths::default())
    }

    /// As [`Collective::kernel`], in other widths.
    pub fn kernel_in(
        &self,
        domain: &Domain,
        dtype: DType,
        op: RedOp,
        widths: Widths,
    ) -> Result<Verified<Kernel>, Diagnostics> {
        if let Some(refused) = self.evaluate.refuses(op) {
            return Err(self.wrong(vec![refused]));
        }
        let (program, schedule) = self.prove(domain, op)?;
        let kernel = kernel::build(&schedule, &program, &self.options(), dtype, op);
        let kernel = Kernel { one_launch: domain.one_device, ..kernel };
        let kernel = widths.apply(kernel).map_err(|list| self.wrong(list))?;
        verify::kernel(kernel, &schedule).map_err(|list| self.wrong(list))
    }

    /// Emits the CUDA text of [`Collective::kernel`].
    pub fn cuda(&self, domain: &Domain, dtype: DType, op: RedOp) -> Result<Cuda, Diagnostics> {
        self.cuda_in(domain, dtype, op, Widths::default())
    }

    /// As [`Collective::cuda`], in other widths.
    pub fn cuda_in(
        &self,
        domain: &Domain,
        dtype: DType,
        op: RedOp,
        widths: Widths,
    ) -> Result<Cuda, Diagnostics> {
        Ok(emit::cuda(&self.kernel_in(domain, dtype, op, widths)?))
    }

    fn prove(&self, domain: &Domain, op: RedOp) -> Result<(Program, Verified<Schedule>), Diagnostics> {
        let options = self.options();
        let program = transport::place(self.program(domain.ranks)?, &options);
        let program = scale::scale(program, op).map_err(|list| self.wrong(list))?;
        let schedule = self
            .lower(&program, domain, &options)
            .and_then(|lowered| verify::schedule(lowered.schedule, &program, domain))
            .map_err(|list| self.wrong(list))?;
        Ok((program, schedule))
    }

    fn wrong(&self, list: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics { list, source: Some(self.source.clone()) }
    }

    /// Proves the program by stage 1 for every size of `sizes` with every combination of the parameters' values. Returns
    /// one finding for each check and statement, shown for the largest failing size with the others named. Skips
    /// combinations that the program's own `assert!`s exclude (see [`verify::without_excluded`]).
    pub fn check(&self, sizes: &[u32]) -> Result<(), Diagnostics> {
        let mut settings = Vec::new();
        for &ranks in sizes {
            for params in self.combinations() {
                let setting = ProgramSetting { ranks, root: self.root, params: params.clone() };
                let list = self.evaluated(&setting).err().unwrap_or_default();
                settings.push(SettingFindings { ranks, params, list });
            }
        }
        let wrong = verify::without_excluded(settings).into_iter().filter(|setting| !setting.list.is_empty());
        let list = verify::merge_sizes(wrong.map(|setting| (setting.ranks, setting.list)).collect());
        if list.is_empty() {
            return Ok(());
        }
        Err(self.wrong(list))
    }

    /// Returns every combination of the parameters' listed values: a single empty one where there are no parameters.
    pub fn combinations(&self) -> Vec<Vec<i64>> {
        self.params.iter().fold(vec![Vec::new()], |before, param| {
            let with = |head: &Vec<i64>| {
                let head = head.clone();
                param.values.iter().map(move |&value| [&head[..], &[value]].concat())
            };
            before.iter().flat_map(with).collect()
        })
    }
}

/// A body, as the source of a program.
struct EvaluatedBody {
    body: Body,
    source: SourceFile,
}

impl Evaluate for EvaluatedBody {
    fn program(&self, setting: &ProgramSetting) -> Result<Program, Vec<Diagnostic>> {
        evaluate::program(&self.body, &self.source, setting)
    }
}

/// The source of a program called the other way: in place for out of place, or the reverse.
struct Otherwise(Arc<dyn Evaluate>);

impl Evaluate for Otherwise {
    fn program(&self, setting: &ProgramSetting) -> Result<Program, Vec<Diagnostic>> {
        let program = self.0.program(setting)?;
        verify::program(&program)?;
        if !program.shape.in_place && !program.shape.kind.has_in_place() {
            let message = format!("`{}` cannot be called in place", program.name);
            return Err(vec![
                Diagnostic::new(Check::Requirement, program.name_loc, message)
                    .context(program.context())
                    .note(format!("{} has no form with one buffer", program.shape.kind)),
            ]);
        }
        let called = aliasing::called_otherwise(&program);
        let judged = called.and_then(|called| verify::program(&called).map(|()| called));
        judged.map_err(|mut list| {
            for finding in &mut list {
                let why = "called in place, where `input` and `output` are one buffer, here `data`";
                finding.notes.push(why.to_owned());
                // A remedy for the program as it is written is none for the other way of calling it.
                finding.help = Some(
                    "call it with two buffers, or keep the result in `scratch` until everybody has read the input".to_owned(),
                );
            }
            list
        })
    }
}

impl fmt::Debug for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collective")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("in_place", &self.in_place)
            .field("ranks", &self.ranks)
            .field("only", &self.only)
            .finish_non_exhaustive()
    }
}
