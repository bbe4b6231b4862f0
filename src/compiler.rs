//! The compiler's forms: for programs that look into a collective, or write its schedule or CUDA text somewhere.
//!
//! A [`Collective`] makes each of them: [`Collective::program`], [`Collective::report`], [`Collective::verified`],
//! [`Collective::kernel`], [`Collective::cuda`].
//!
//! | group | has |
//! |---|---|
//! | findings | [`Diagnostics`], each a [`Diagnostic`] of a [`Check`] with its place |
//! | programs | the [`Program`] of a [`ProgramSetting`]: its [`Kind`], [`Shape`], types and operators; its [`Report`] |
//! | schedules | the [`Schedule`] for a [`Domain`], by [`ScheduleOptions`]; [`Savings`] of its lowering |
//! | kernels | the [`Kernel`] and its [`Cuda`] text, with the [`Widths`] of its counters; [`Verified`] where checks have passed |
//! | names | [`Rank`], [`ThreadBlock`], [`BlockId`] and [`Buffer`]; [`UnknownName`] where a name is none |

// Findings.
pub use quadrille_compiler::diagnostic::{
    Check, Diagnostic, DiagnosticContext, Diagnostics, LineColumn, Loc, SourceFile,
};

// Programs.
pub use quadrille_compiler::collective::Collective;
pub use quadrille_compiler::program::dtype::{DType, RedOp, Scalar};
pub use quadrille_compiler::program::kind::{Kind, Shape};
pub use quadrille_compiler::program::{Program, ProgramSetting};
pub use quadrille_compiler::report::Report;

// Schedules.
pub use quadrille_compiler::lower::Savings;
pub use quadrille_compiler::options::{Protocol, ScheduleOptions, Transport};
pub use quadrille_compiler::schedule::Schedule;
pub use quadrille_compiler::schedule::domain::{DEFAULT_BLOCK_CAP, Domain, LARGEST_BLOCK_CAP};

// Kernels.
pub use quadrille_compiler::emit::Cuda;
pub use quadrille_compiler::kernel::Kernel;
pub use quadrille_compiler::kernel::widths::Widths;
pub use quadrille_compiler::verified::Verified;

// Names.
pub use quadrille_compiler::names::UnknownName;
pub use quadrille_compiler::program::ids::{BlockId, Buffer, Rank, ThreadBlock};
