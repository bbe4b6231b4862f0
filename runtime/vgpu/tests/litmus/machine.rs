//! Small programs of several threads: their text, and how the machine runs them.
//!
//! A program is written in PTX with names: `[x]` is a word of global memory, `r0`, `r1`, .. are 32-bit result
//! registers, and `.global` and `.u32` may be left out of `ld`, `st` and `atom`. Each thread has a place
//! `rank.block.warp.lane`; the lane `*` stands for a whole warp, whose results are those of lane 0. Lines are
//! separated by `;`. `%lane` is the lane, and the predicates `%is0` and `%is1` hold in lanes 0 and 1.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use quadrille_vgpu::{Config, Fault, Launch, Machine, ModelCheck, PacketLayout, Policy, PtxModule, Stale};

/// The most locations, and results of a thread.
const LOCATIONS: usize = 8;
const RESULTS: usize = 6;
/// Bytes from a location to the next one.
const STRIDE: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) rank: u32,
    pub(crate) block: u32,
    pub(crate) warp: u32,
    /// None of a whole warp.
    pub(crate) lane: Option<u32>,
}

impl Placement {
    pub(crate) fn parse(text: &str) -> Placement {
        let parts: Vec<&str> = text.split('.').collect();
        let number = |at: usize| parts[at].parse().unwrap();
        Placement {
            rank: number(0),
            block: number(1),
            warp: number(2),
            lane: (parts[3] != "*").then(|| number(3)),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) at: Placement,
    pub(crate) lines: Vec<String>,
    /// Result registers in use.
    pub(crate) results: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) threads: Vec<Thread>,
    /// In the order in which they are first named.
    pub(crate) locations: Vec<String>,
    /// Warps of every block.
    warps: u32,
    /// By rank.
    modules: BTreeMap<u32, Arc<PtxModule>>,
}

/// What the machine is to do.
#[derive(Clone, Debug)]
pub(crate) struct How<'h> {
    pub(crate) check: ModelCheck,
    pub(crate) policy: Policy,
    pub(crate) seed: u64,
    /// Locations that are packet regions of so many bytes.
    pub(crate) packets: Vec<(&'h str, u64, PacketLayout)>,
    /// Names that are second addresses of other locations.
    pub(crate) aliases: Vec<(&'h str, &'h str)>,
    /// Names that stand for multicast ranges of other locations: the first of those lies on rank 0, the next on rank 1,
    /// and so on.
    pub(crate) multicasts: Vec<(&'h str, &'h [&'h str])>,
}

impl How<'_> {
    pub(crate) fn new(races: bool, stale: Stale, seed: u64) -> How<'static> {
        let policy = [Policy::Random, Policy::Adversarial, Policy::RoundRobin][seed as usize % 3];
        let check = ModelCheck { races, stale };
        How { check, policy, seed, packets: Vec::new(), aliases: Vec::new(), multicasts: Vec::new() }
    }
}

/// Results of all threads, then the last values of all locations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Outcome {
    pub(crate) results: Vec<u32>,
    pub(crate) last: Vec<u32>,
}

/// An instruction with its types and spaces.
fn complete(mnemonic: &str) -> String {
    let named = |part: &str| mnemonic.split('.').any(|p| p == part);
    if named("global") || named("shared") {
        return mnemonic.to_owned();
    }
    match mnemonic.split('.').next() {
        Some("ld" | "st") => format!("{mnemonic}.global.u32"),
        Some("atom" | "red") => {
            let (head, op) = mnemonic.rsplit_once('.').unwrap();
            let ty = if matches!(op, "exch" | "cas") { "b32" } else { "u32" };
            format!("{head}.global.{op}.{ty}")
        }
        _ => mnemonic.to_owned(),
    }
}

/// Splits a line into its guard and label, its mnemonic, and the rest.
pub(crate) fn split(line: &str) -> (&str, &str, &str) {
    let (guard, rest) = match line.strip_prefix('@') {
        Some(_) => line.split_once(' ').unwrap(),
        None => ("", line),
    };
    let (mnemonic, operands) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
    (guard, mnemonic, operands)
}

impl Program {
    pub(crate) fn new(threads: &[(&str, &str)]) -> Program {
        let mut locations: Vec<String> = Vec::new();
        let mut parsed = Vec::new();
        for (at, text) in threads {
            let lines: Vec<String> =
                text.split(';').map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect();
            let mut results = 0;
            for line in &lines {
                for name in line.split('[').skip(1).map(|rest| rest.split([']', '+']).next().unwrap().trim())
                {
                    if !name.starts_with('%') && name != "tile" && !locations.iter().any(|l| l == name) {
                        locations.push(name.to_owned());
                    }
                }
                for r in 0..RESULTS {
                    let named =
                        line.split(|c: char| !c.is_alphanumeric() && c != '%').any(|w| w == format!("r{r}"));
                    results = if named { results.max(r + 1) } else { results };
                }
            }
            parsed.push(Thread { at: Placement::parse(at), lines, results });
        }
        assert!(locations.len() <= LOCATIONS);
        let warps = parsed.iter().map(|t| t.at.warp + 1).max().unwrap();
        let mut program = Program { threads: parsed, locations, warps, modules: BTreeMap::new() };
        let ranks: Vec<u32> = program.threads.iter().map(|t| t.at.rank).collect();
        for rank in ranks {
            let text = program.kernel(rank);
            let module = Arc::new(PtxModule::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")));
            program.modules.insert(rank, module);
        }
        program
    }

    /// The kernel of a rank.
    pub(crate) fn kernel(&self, rank: u32) -> String {
        let mut k = String::from(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 words, .param .u64 out)\n{\n\
             .reg .pred %p<20>, %is0, %is1; .reg .b32 %r<60>, %lane; .reg .b64 %rd<60>, %out; .reg .b32 r<10>; .reg .b128 %q<4>;\n\
             .shared .align 8 .b8 tile[256];\nld.param.u64 %rd50, [words]; ld.param.u64 %out, [out];\n\
             mov.u32 %r50, %ctaid.x; mov.u32 %r51, %tid.x; mad.lo.u32 %r52, %r50, 1024, %r51;\n\
             and.b32 %lane, %r51, 31; setp.eq.u32 %is0, %lane, 0; setp.eq.u32 %is1, %lane, 1;\n",
        );
        for at in 0..self.locations.len() {
            let _ = writeln!(k, "ld.global.nc.u64 %rd{at}, [%rd50+{}];", 8 * at);
        }
        for r in 0..RESULTS {
            let _ = writeln!(k, "mov.u32 r{r}, 0;");
        }
        let mine = || self.threads.iter().enumerate().filter(|(_, t)| t.at.rank == rank);
        for (n, Thread { at, .. }) in mine() {
            let first = at.block * 1024 + at.warp * 32;
            match at.lane {
                Some(lane) => {
                    let _ = writeln!(k, "setp.eq.u32 %p1, %r52, {}; @%p1 bra T{n};", first + lane);
                }
                None => {
                    let _ =
                        writeln!(k, "sub.u32 %r53, %r52, {first}; setp.lt.u32 %p1, %r53, 32; @%p1 bra T{n};");
                }
            }
        }
        k.push_str("ret;\n");
        for (n, thread) in mine() {
            let _ = writeln!(k, "T{n}:");
            for line in &thread.lines {
                if line.ends_with(':') {
                    let _ = writeln!(k, "T{n}{line}");
                    continue;
                }
                let (guard, mnemonic, operands) = split(line);
                let mut operands = operands.to_owned();
                if mnemonic == "bra" {
                    operands = format!("T{n}{operands}");
                }
                for (at, name) in self.locations.iter().enumerate() {
                    operands = operands.replace(&format!("[{name}]"), &format!("[%rd{at}]"));
                    operands = operands.replace(&format!("[{name}+"), &format!("[%rd{at}+"));
                }
                let _ = writeln!(k, "{guard} {} {operands};", complete(mnemonic));
            }
            let guard = if thread.at.lane.is_none() { "@%is0" } else { "" };
            for r in 0..thread.results {
                let _ = writeln!(k, "{guard} st.global.u32 [%out+{}], r{r};", 4 * (n * RESULTS + r));
            }
            k.push_str("ret;\n");
        }
        k.push('}');
        k
    }

    /// A machine with the program launched, and the addresses of the locations and of the results.
    pub(crate) fn machine(&self, how: &How<'_>) -> (Machine, Vec<u64>, u64) {
        let ranks = self.threads.iter().map(|t| t.at.rank + 1).max().unwrap();
        let config = Config {
            ranks: ranks as usize,
            check: Some(how.check),
            policy: how.policy,
            seed: how.seed,
            quantum: [2, 5][how.seed as usize / 3 % 2],
            instruction_limit: Some(100_000),
            ..Config::default()
        };
        let mut machine = Machine::new(config).unwrap();
        let words = machine.alloc_zeroed(0, STRIDE * LOCATIONS as u64, 256, "words").unwrap();
        let mut at: Vec<u64> = (0..self.locations.len() as u64).map(|l| words + l * STRIDE).collect();
        let place = |name: &str| self.locations.iter().position(|l| l == name).unwrap();
        for (second, first) in &how.aliases {
            at[place(second)] = machine.alias(words).unwrap() + (at[place(first)] - words);
        }
        for &(name, members) in &how.multicasts {
            let mut parts = Vec::new();
            for (rank, member) in members.iter().enumerate() {
                at[place(member)] = machine.alloc_zeroed(rank, STRIDE, 256, member).unwrap();
                parts.push(at[place(member)]);
            }
            at[place(name)] = machine.multicast(&parts, STRIDE, name).unwrap();
        }
        for &(name, bytes, layout) in &how.packets {
            machine.packets(at[place(name)], bytes, layout).unwrap();
        }
        let table = machine.alloc_zeroed(0, 8 * LOCATIONS as u64, 256, "table").unwrap();
        let bytes: Vec<u8> = at.iter().flat_map(|a| a.to_le_bytes()).collect();
        machine.write(table, &bytes).unwrap();
        let out = machine.alloc_zeroed(0, 4 * (RESULTS * self.threads.len()) as u64, 256, "out").unwrap();
        for (&rank, module) in &self.modules {
            let mine = self.threads.iter().filter(|t| t.at.rank == rank);
            let launch = Launch {
                rank: rank as usize,
                module: module.clone(),
                kernel: "k".into(),
                grid: [mine.map(|t| t.at.block + 1).max().unwrap(), 1, 1],
                block: [32 * self.warps, 1, 1],
                shared_bytes: 0,
                params: vec![table.to_le_bytes().to_vec(), out.to_le_bytes().to_vec()],
            };
            machine.launch(launch).unwrap();
        }
        (machine, at, out)
    }

    pub(crate) fn run(&self, how: &How<'_>) -> Result<Outcome, Fault> {
        let (mut machine, at, out) = self.machine(how);
        machine.run()?;
        let word = |at: u64| u32::from_le_bytes(machine.read(at, 4).unwrap().try_into().unwrap());
        let mut results = Vec::new();
        for (n, thread) in self.threads.iter().enumerate() {
            results.extend((0..thread.results).map(|r| word(out + 4 * (n * RESULTS + r) as u64)));
        }
        let range = |name: &str| how.multicasts.iter().any(|(multicast, _)| *multicast == name);
        let locations = self.locations.iter().zip(&at);
        let last = locations.map(|(name, &at)| if range(name) { 0 } else { word(at) }).collect();
        Ok(Outcome { results, last })
    }

    /// How often each outcome shows up, and the first seed that brings it.
    pub(crate) fn outcomes(
        &self,
        stale: Stale,
        seeds: std::ops::Range<u64>,
    ) -> BTreeMap<Outcome, (usize, u64)> {
        self.outcomes_with(&How::new(false, stale, 0), seeds)
    }

    /// As [`Program::outcomes`], with locations as they are there.
    pub(crate) fn outcomes_with(
        &self,
        how: &How<'_>,
        seeds: std::ops::Range<u64>,
    ) -> BTreeMap<Outcome, (usize, u64)> {
        let mut found = BTreeMap::new();
        for seed in seeds {
            let How { check, policy, .. } = How::new(false, how.check.stale, seed);
            let how = How { check, policy, seed, ..how.clone() };
            let outcome = self.run(&how).unwrap_or_else(|f| panic!("seed {seed}: {f}"));
            found.entry(outcome).or_insert((0, seed)).0 += 1;
        }
        found
    }
}
