//! A parsed and decoded PTX module.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::fault::{PtxError, PtxProblem, PtxProblemKind, SourceLine, Space};
use crate::front::ast::{Init, Var};
use crate::front::decode::decode;
use crate::front::parser::parse;
use crate::front::share_registers::Sharing;
use crate::isa::PtxFunction;

/// All variables of a module together.
const MAX_VARIABLE_BYTES: u64 = 1 << 30;

/// A global or constant variable.
#[derive(Clone, Debug)]
pub(crate) struct ModuleVariable {
    pub(crate) name: Arc<str>,
    pub(crate) constant: bool,
    pub(crate) align: u32,
    /// The first bytes; the rest of `bytes` are zeros.
    pub(crate) image: Vec<u8>,
    pub(crate) bytes: u64,
    /// Places in the image that hold the address of a variable: offset, variable, addend.
    pub(crate) relocations: Vec<(usize, usize, i64)>,
}

/// A PTX module, ready to be launched on any rank.
#[derive(Clone, Debug)]
pub struct PtxModule {
    pub(crate) functions: Vec<PtxFunction>,
    pub(crate) variables: Vec<ModuleVariable>,
}

impl PtxModule {
    /// Parses and decodes a PTX text.
    ///
    /// # Errors
    /// All problems of the text with their lines: what does not follow the grammar (the first only), and every name,
    /// instruction and operand that the machine does not know.
    pub fn parse(text: &str) -> Result<PtxModule, PtxError> {
        PtxModule::parse_as(text, Sharing::Live)
    }

    pub(crate) fn parse_as(text: &str, sharing: Sharing) -> Result<PtxModule, PtxError> {
        let ast = parse(text).map_err(|problem| PtxError { problems: vec![problem] })?;
        let mut functions = decode(&ast, sharing).map_err(|problems| PtxError { problems })?;
        let vars: Vec<&Var<'_>> = ast.vars.iter().filter(|v| v.space != Space::Shared).collect();
        let numbers: FxHashMap<&str, usize> = vars.iter().enumerate().map(|(i, v)| (v.name, i)).collect();
        let mut variables = Vec::new();
        let mut total = 0u64;
        let mut problems = Vec::new();
        for var in &vars {
            let size = var.ty.bytes().max(1);
            let mut image = vec![0; var.init.len() * size];
            let mut relocations = Vec::new();
            total = var.bytes.saturating_add(total);
            if total > MAX_VARIABLE_BYTES {
                let kind = PtxProblemKind::Limit { what: "bytes of variables", limit: MAX_VARIABLE_BYTES };
                problems.push(PtxProblem { line: var.line, kind });
                break;
            }
            for (i, init) in var.init.iter().enumerate() {
                match *init {
                    Init::Bits(bits) => {
                        let bytes = u128::from(bits).to_le_bytes();
                        image[i * size..(i + 1) * size].copy_from_slice(&bytes[..size]);
                    }
                    Init::Address(name, addend) => match numbers.get(name) {
                        Some(&target) if size == 8 => relocations.push((i * size, target, addend)),
                        _ => problems.push(PtxProblem {
                            line: var.line,
                            kind: PtxProblemKind::Undeclared { name: name.into() },
                        }),
                    },
                }
            }
            if var.is_extern {
                let kind = PtxProblemKind::Undeclared { name: var.name.into() };
                problems.push(PtxProblem { line: var.line, kind });
            }
            variables.push(ModuleVariable {
                name: var.name.into(),
                constant: var.space == Space::Const,
                align: var.align.max(1),
                image,
                bytes: var.bytes,
                relocations,
            });
        }
        if !problems.is_empty() {
            return Err(PtxError { problems });
        }
        let mut next = 0;
        for function in &mut functions {
            function.first = next;
            next += function.code.len() as u32;
        }
        Ok(PtxModule { functions, variables })
    }

    /// The PTX line and the source line of an instruction, by its number in the module.
    pub(crate) fn lines(&self, site: u32) -> (u32, Option<SourceLine>) {
        let number = self.functions.partition_point(|f| f.first <= site) - 1;
        let function = &self.functions[number];
        let inst = &function.code[(site - function.first) as usize];
        (inst.line, function.lines.get(inst.loc as usize).cloned())
    }

    /// Names of the kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().filter(|f| f.entry).map(|f| &*f.name)
    }

    /// Bytes of each parameter of a kernel; `None` if there is no such kernel.
    pub fn parameters(&self, kernel: &str) -> Option<Vec<usize>> {
        let found = self.functions.iter().find(|f| f.entry && *f.name == *kernel)?;
        Some(found.params.iter().map(|p| p.bytes as usize).collect())
    }

    /// Offset of dynamic shared memory, which lies behind the static one.
    pub(crate) fn dynamic_begin(static_bytes: u32) -> u64 {
        u64::from(static_bytes).next_multiple_of(128)
    }
}
