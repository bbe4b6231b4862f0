//! Problems of a PTX text.

use std::fmt;

/// One thing wrong with a PTX text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {kind}")]
pub struct PtxProblem {
    /// Line of the PTX text, from 1.
    pub line: u32,
    /// The problem.
    pub kind: PtxProblemKind,
}

/// Kinds of problems of a PTX text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxProblemKind {
    /// The text does not follow the grammar.
    #[error("expected {expected}, found `{found}`")]
    Syntax {
        /// The text that the grammar asks for here.
        expected: &'static str,
        /// The text that stands there.
        found: Box<str>,
    },
    /// A number that cannot be read or does not fit.
    #[error("`{text}` is not a number that fits here")]
    Number {
        /// The number as written.
        text: Box<str>,
    },
    /// An instruction, or a form of it, that the machine does not execute.
    #[error("instruction `{instruction}` is not supported: {reason}")]
    Unsupported {
        /// The instruction with its qualifiers.
        instruction: Box<str>,
        /// The part that is not supported.
        reason: &'static str,
    },
    /// A directive that the machine does not know.
    #[error("directive `{directive}` is not supported")]
    Directive {
        /// The directive as written.
        directive: Box<str>,
    },
    /// A name that nothing declares.
    #[error("`{name}` is not declared")]
    Undeclared {
        /// The name.
        name: Box<str>,
    },
    /// A name that is declared twice.
    #[error("`{name}` is declared twice")]
    Redeclared {
        /// The name.
        name: Box<str>,
    },
    /// An operand that does not fit its instruction.
    #[error("operand {index} of `{instruction}`: {reason}")]
    Operand {
        /// The instruction with its qualifiers.
        instruction: Box<str>,
        /// Position of the operand, from 1; the destination is the first.
        index: usize,
        /// Why it does not fit.
        reason: &'static str,
    },
    /// More of something than the machine admits.
    #[error("too many {what}: the limit is {limit}")]
    Limit {
        /// The things that are too many.
        what: &'static str,
        /// The most that is admitted.
        limit: u64,
    },
}

/// All problems found in a PTX text, in order of lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxError {
    /// The problems.
    pub problems: Vec<PtxProblem>,
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PtxError {}
