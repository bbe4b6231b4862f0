//! `quadrille check`: stages 1 and 2 for every world size in question, and the report.

mod executor;
mod json;
mod text;

use crate::cli::failure::CommandFailure;
use crate::cli::output::Output;
use crate::cli::runtime::RuntimeOption;
use crate::cli::setting::{SettingError, SettingOptions};
use crate::cli::{ranks, setting, source};
use clap::Args;
use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::{Check, Diagnostic, Diagnostics};
use quadrille_compiler::interop;
use quadrille_compiler::lower::Savings;
use quadrille_compiler::report::Report;
use quadrille_compiler::schedule::Totals;
use quadrille_compiler::verify::{self, SettingFindings};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// The arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// A Rust source, an MSCCL XML file, or builtin:NAME; with ::NAME where it has several collectives
    #[arg(value_name = "FILE[::NAME]")]
    file: String,
    /// World size [default: every listed one]
    #[arg(long, value_name = "N")]
    ranks: Option<ranks::WorldSize>,
    /// Every world size from 1 to the largest listed one; those that an `assert!` excludes are named
    #[arg(long, conflicts_with = "ranks")]
    all_ranks: bool,
    /// The schedule to prove, by its place among the `#[schedule(..)]` attributes [default: every one]
    #[arg(long, value_name = "N")]
    schedule: Option<usize>,
    #[command(flatten)]
    setting: SettingOptions,
    #[command(flatten)]
    runtime: RuntimeOption,
}

/// The verdict on one world size, with one value of each parameter.
#[derive(Debug)]
struct CheckedSize {
    ranks: u32,
    root: u32,
    params: Vec<(String, i64)>,
    verdict: SizeVerdict,
}

#[derive(Debug)]
enum SizeVerdict {
    /// Stage 1 holds.
    Right(Box<Proved>),
    /// The program itself refuses the size.
    NotAdmitted { why: String },
    /// There are findings.
    Wrong,
}

/// A proved program.
#[derive(Debug)]
struct Proved {
    report: Report,
    schedules: Vec<CheckedSchedule>,
    /// Called with one buffer, and with two: or why not.
    in_place: Result<(), String>,
    out_of_place: Result<(), String>,
}

/// Stage 2 of one schedule.
#[derive(Debug)]
struct CheckedSchedule {
    /// Its place among the attributes, from 1.
    number: usize,
    outcome: ScheduleVerdict,
}

#[derive(Debug)]
enum ScheduleVerdict {
    /// It holds.
    Proved { totals: Totals, saved: Savings, tile: Option<u64>, instances: u32, proof_ms: f64 },
    /// It asks for what cannot be carried out yet.
    Waits { why: String },
    /// There are findings.
    Wrong,
}

impl Proved {
    /// Returns true if every schedule is proved.
    fn whole(&self) -> bool {
        self.schedules.iter().all(|schedule| matches!(schedule.outcome, ScheduleVerdict::Proved { .. }))
    }

    fn wrong(&self) -> bool {
        self.schedules.iter().any(|schedule| matches!(schedule.outcome, ScheduleVerdict::Wrong))
    }
}

/// Checks the collective that is named, or every collective of the file.
pub(crate) fn check(check: &CheckArgs, out: &mut Output) -> Result<(), CommandFailure> {
    let (file, collectives) = source::load_all(&check.file)?;
    let several = collectives.len() > 1;
    let (mut said, mut findings) = (Vec::new(), Diagnostics { list: Vec::new(), source: None });
    for (i, collective) in collectives.into_iter().enumerate() {
        if i > 0 {
            out.line("");
        }
        let collective = check.setting.apply(collective)?;
        let (fields, list) = whole(check, &collective, several, out)?;
        findings.list.extend(list);
        findings.source.get_or_insert(collective.source);
        said.push(fields);
    }
    if several {
        out.field("file", file);
        out.field("collectives", said);
    } else {
        said.into_iter().flatten().for_each(|(name, value)| out.field(&name, value));
    }
    if findings.list.is_empty() { Ok(()) } else { Err(findings.into()) }
}

/// Checks one collective: the fields of its JSON object, and its findings. `several` asks for a table, which names it.
fn whole(
    check: &CheckArgs,
    collective: &Collective,
    several: bool,
    out: &mut Output,
) -> Result<(Map<String, Value>, Vec<Diagnostic>), CommandFailure> {
    let schedules = schedules(check, collective)?;
    let sizes = ranks::several(collective, check.ranks, check.all_ranks)?;
    let settings: Vec<_> = sizes
        .into_iter()
        .flat_map(|ranks| check.setting.combinations(collective).into_iter().map(move |c| (ranks, c)))
        .collect();
    let table = several || settings.len() > 1;
    let mut found = Vec::new();
    let mut sizes = Vec::new();
    for (ranks, collective) in settings {
        sizes.push(judge(check, &collective, ranks, &schedules, &mut found));
    }
    // Of one world size, other sizes may admit the values that it excludes.
    let one_admits = check.ranks.is_some() && found.iter().any(|setting| !setting.excluded());
    let wrong: Vec<_> = match check.all_ranks || one_admits {
        true => found.into_iter().filter(|setting| !setting.excluded()).collect(),
        false => verify::without_excluded(found),
    };
    let (mut list, mut fields) = (Vec::new(), Map::new());
    if let Some(own) = interop::executed(&collective.source, check.runtime.get()) {
        let own = executor::OwnVerdict::new(own, wrong.iter().flat_map(|setting| &setting.list));
        out.line(own.text());
        fields.insert("executor".into(), own.json());
        list = own.findings();
    }
    if table {
        out.line(text::head(collective));
    }
    let mut said = Vec::new();
    for size in &sizes {
        out.line(if table { text::row(size) } else { text::whole(size) });
        said.push(json::size(size));
    }
    fields.insert("collective".into(), json!(collective.name));
    fields.insert("kind".into(), json!(collective.kind.name()));
    fields.insert("file".into(), json!(&*collective.source.path));
    fields.insert("sizes".into(), said.into());
    list.extend(verify::merge_sizes(
        wrong.into_iter().map(|setting| (setting.ranks, setting.list)).collect(),
    ));
    Ok((fields, list))
}

/// The schedules to prove, by their index.
fn schedules(check: &CheckArgs, collective: &Collective) -> Result<Vec<usize>, SettingError> {
    match check.schedule {
        None => Ok((0..collective.schedules.len().max(1)).collect()),
        Some(given) => Ok(vec![setting::schedule(collective, given)?]),
    }
}

fn judge(
    check: &CheckArgs,
    collective: &Collective,
    ranks: u32,
    schedules: &[usize],
    found: &mut Vec<SettingFindings>,
) -> CheckedSize {
    let values: Vec<i64> = collective.params.iter().map(|param| param.value).collect();
    let mut find = |list| found.push(SettingFindings { ranks, params: values.clone(), list });
    let params: Vec<_> = collective.params.iter().map(|param| (param.name.clone(), param.value)).collect();
    // What is sent and in which order is combined may depend on the schedule: reported is the first in question.
    let first = schedules.first().map_or(collective.clone(), |&index| collective.with_schedule(index));
    let verdict = match first.report(ranks) {
        Ok(report) => {
            find(Vec::new());
            SizeVerdict::Right(Box::new(Proved {
                report,
                schedules: schedules
                    .iter()
                    .map(|&index| prove(collective, ranks, index, &mut find))
                    .collect(),
                in_place: called(collective, ranks, true),
                out_of_place: called(collective, ranks, false),
            }))
        }
        Err(Diagnostics { list, .. }) => {
            let excluded = list.iter().all(|finding| finding.excludes);
            let why = list.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ");
            find(list);
            // Without parameters a listed size that the program excludes is an error.
            if excluded && (check.all_ranks || !params.is_empty()) {
                SizeVerdict::NotAdmitted { why }
            } else {
                SizeVerdict::Wrong
            }
        }
    };
    CheckedSize { ranks, root: collective.root, params, verdict }
}

/// Stage 2.
fn prove(
    collective: &Collective,
    ranks: u32,
    index: usize,
    find: &mut impl FnMut(Vec<Diagnostic>),
) -> CheckedSchedule {
    let began = Instant::now();
    let outcome = match collective.with_schedule(index).verified(&collective.domain(ranks)) {
        Ok(schedule) => {
            let proof_ms = began.elapsed().as_secs_f64() * 1e3;
            let saved =
                collective.with_schedule(index).savings(&collective.domain(ranks)).unwrap_or_default();
            let (tile, instances) = (schedule.tile, schedule.instances);
            ScheduleVerdict::Proved { totals: schedule.totals(), saved, tile, instances, proof_ms }
        }
        Err(Diagnostics { list, .. }) => match waits(&list) {
            Some(why) => ScheduleVerdict::Waits { why },
            None => {
                find(list);
                ScheduleVerdict::Wrong
            }
        },
    };
    CheckedSchedule { number: index + 1, outcome }
}

/// Returns the features that a schedule waits for, if their lack is all that is wrong with it.
fn waits(list: &[Diagnostic]) -> Option<String> {
    let what = |finding: &Diagnostic| {
        let what = finding.message.strip_suffix(" cannot be carried out yet")?;
        (finding.check == Check::Unsupported).then(|| what.to_owned())
    };
    let mut parts: Vec<_> = list.iter().map(what).collect::<Option<_>>()?;
    parts.dedup();
    Some(parts.join(", "))
}

/// Checks that the collective can be called in place, or out of place; returns the first reason otherwise.
fn called(collective: &Collective, ranks: u32, in_place: bool) -> Result<(), String> {
    collective.called(in_place).program(ranks).map(drop).map_err(|Diagnostics { list, .. }| {
        list.first().map_or_else(String::new, |finding| match (finding.loc, finding.notes.first()) {
            (Some(loc), _) if loc != collective.name_loc => format!("{} at {loc}", finding.headline()),
            (_, Some(why)) => format!("{}: {why}", finding.headline()),
            _ => finding.headline(),
        })
    })
}
