//! The runtime on kernels written by hand against the ABI, so that what is tested here does not rest on the compiler.

mod assembled;
mod by_hand;
mod calls;
mod collectives;
mod cuda;
mod failures;
mod memory;
mod moves;
mod mutants;
mod plain;
mod rolled;
mod shared;
mod waits;

use quadrille_compiler::collective::Collective;
use quadrille_compiler::diagnostic::Loc;
use quadrille_compiler::emit::{Cuda, EmittedLine};
use quadrille_compiler::options::{Given, Protocol, ScheduleOptions, StatementOptions, Transport};
use quadrille_compiler::program::dtype::{DType, RedOp};
use quadrille_compiler::program::kind::{Kind, Shape};
use quadrille_runtime::internals::{self, Unproved};
use quadrille_runtime::{
    Communicator, Error, LoadedKernel, PreparedCall, Session, World, WorldOptions, nvrtc,
};
use quadrille_testing::{Pattern, TestMessage};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const CAP: u32 = 2;

/// libnvrtc, fetched if need be.
fn provide() {
    static PROVIDED: OnceLock<()> = OnceLock::new();
    PROVIDED.get_or_init(|| {
        nvrtc::provide(nvrtc::announce).unwrap_or_else(|error| panic!("{error}"));
    });
}

/// `tests/gather.cu` in one of its forms.
#[derive(Clone, Copy)]
struct Gather {
    ranks: u32,
    dtype: DType,
    in_place: bool,
    /// A macro that the text knows, or any other, which makes the text another one.
    define: &'static str,
}

impl Gather {
    fn new(ranks: u32) -> Gather {
        Gather { ranks, dtype: DType::F32, in_place: false, define: "NOTHING" }
    }

    fn shape(self) -> Shape {
        let Gather { ranks, in_place, .. } = self;
        Shape { in_place, ..Shape::new(Kind::AllGather, ranks, 1) }
    }

    fn message(self, count: u64) -> TestMessage {
        TestMessage { shape: self.shape(), contract: None, divisible: false, count, dtype: self.dtype }
    }

    fn cuda(self) -> Cuda {
        let element = match self.dtype {
            DType::F32 => "u32",
            _ => "unsigned short",
        };
        let entry = "gather_by_hand";
        let text = format!(
            "#define RANKS {}\n#define CAP {CAP}\n#define ELEMENT {element}\n#define IN_PLACE {}\n#define ENTRY {entry}\n\
             #define {} 1\n{}",
            self.ranks,
            u32::from(self.in_place),
            self.define,
            include_str!("gather.cu")
        );
        let lines = text.lines().enumerate().filter_map(|(i, line)| {
            let (_, what) = line.split_once("//@")?;
            Some(EmittedLine { line: i as u32 + 1, what: what.trim().to_owned(), steps: None })
        });
        Cuda {
            staged: false,
            reaches_peers: true,
            multicast: false,
            tiles: None,
            entry: entry.to_owned(),
            lines: lines.collect(),
            classes: Vec::new(),
            names: Vec::new(),
            ranks: self.ranks,
            grid: vec![1; self.ranks as usize],
            one_launch: false,
            threads: 64,
            block_cap: CAP,
            dtype: self.dtype,
            op: RedOp::Sum,
            device_bytes: 0,
            text,
        }
    }

    fn load(self, communicators: &[Communicator]) -> Vec<LoadedKernel> {
        self.load_as(communicators, self.shape(), false)
    }

    fn load_as(self, communicators: &[Communicator], shape: Shape, divisible: bool) -> Vec<LoadedKernel> {
        provide();
        let name = format!("gather_{}", self.define.to_lowercase());
        load_unproved(communicators, &Unproved { name, shape, divisible, cuda: self.cuda() })
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A call with test data, and what it must give.
    fn prepare(self, session: &Session, count: u64, shift: u32) -> (PreparedCall, Vec<Vec<u8>>) {
        let message = self.message(count);
        let inputs = message.inputs(Pattern::OneHot { shift });
        let expected = message.reference(RedOp::Sum, &inputs);
        let prepared = session.prepare(self.load(session.communicators()), &inputs);
        (prepared.unwrap_or_else(|error| panic!("{error}")), expected)
    }
}

fn world(ranks: u32) -> World {
    let options = WorldOptions { block_cap: CAP, ..WorldOptions::default() };
    World::virtual_gpus_with(ranks, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Every program of the tree.
fn collectives() -> Vec<Collective> {
    static FOUND: OnceLock<Vec<Collective>> = OnceLock::new();
    FOUND.get_or_init(read_collectives).clone()
}

fn read_collectives() -> Vec<Collective> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in ["examples", "tests/programs"] {
        let mut files: Vec<PathBuf> =
            root.join(folder).read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            found.extend(quadrille_dsl::parse_file(&file.to_string_lossy(), &text).unwrap());
        }
    }
    found
}

/// The program of that name, moved by a protocol through slots where one is given, by so many blocks.
fn collective(name: &str, staged: Option<Protocol>, blocks: Option<u32>) -> Collective {
    let found = collectives().into_iter().find(|collective| collective.name == name);
    let mut collective = found.unwrap_or_else(|| panic!("there is no program {name}"));
    if let Some(protocol) = staged {
        fn given<T>(value: T) -> Option<Given<T>> {
            Some(Given { value, loc: Loc::default() })
        }
        let how = StatementOptions { transport: given(Transport::Staged), protocol: given(protocol) };
        let blocks = blocks.and_then(given);
        collective.schedules = vec![ScheduleOptions { how, blocks, ..collective.options() }];
        collective.chosen = 0;
        collective.name = format!("{name} {protocol}");
    }
    collective
}

/// Compiled kernels and mutants, from run to run.
fn cache() -> nvrtc::Cache {
    let program = std::env::current_exe().unwrap();
    // From PROFILE/deps to the target folder.
    let target = program.ancestors().nth(3).unwrap_or(&program);
    nvrtc::Cache::new(target.join("tmp/mutants"))
}

/// A collective's kernels, small, with another text.
fn kernels_of(
    session: &Session,
    collective: &Collective,
    text: impl Fn(&str) -> String,
) -> Vec<LoadedKernel> {
    let world = session.world();
    let program = collective.program(world.ranks()).unwrap();
    let cuda = collective
        .cuda_in(&world.domain(), DType::F32, RedOp::Sum, quadrille_compiler::kernel::widths::Widths::SMALL)
        .unwrap();
    let changed = text(&cuda.text);
    assert_ne!(changed, cuda.text);
    let cuda = Cuda { text: changed, ..cuda };
    let (name, shape, divisible) = (collective.name.clone(), program.shape, program.divisible);
    load_unproved(session.communicators(), &Unproved { name, shape, divisible, cuda }).unwrap()
}

/// A text's kernel of every rank.
fn load_unproved(communicators: &[Communicator], unproved: &Unproved) -> Result<Vec<LoadedKernel>, Error> {
    communicators.iter().map(|communicator| Ok(internals::load(communicator, unproved.clone())?.0)).collect()
}
