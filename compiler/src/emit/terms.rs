//! Words and blocks of CUDA that several parts of the text are made of.

use crate::kernel::{Kernel, KernelAction, Series};
use crate::options::Protocol;
use crate::program::Scaling;

/// The protocol's name in device code.
pub(super) fn c_protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Simple => "SIMPLE",
        Protocol::Ll => "LL",
        Protocol::Ll128 => "LL128",
    }
}

/// The thread that a link is of, as a C expression.
pub(super) fn thread_of(link: Series, threads: u32) -> String {
    match link.by {
        0 => (link.start as u32 % threads).to_string(),
        _ => format!("({link}) % THREADS"),
    }
}

/// Every way in which a step scales, in the order of first use.
pub(super) fn scalings(kernel: &Kernel) -> Vec<&Scaling> {
    let mut known: Vec<&Scaling> = Vec::new();
    for step in kernel.classes.iter().flat_map(|class| &class.steps) {
        if let KernelAction::Move { scaling, .. } = &step.action
            && !scaling.is_none()
            && !known.contains(&scaling)
        {
            known.push(scaling);
        }
    }
    known
}

/// The operator of a step that scales so.
pub(super) fn operator(kernel: &Kernel, scaling: &Scaling) -> String {
    if scaling.is_none() {
        return "Op".to_owned();
    }
    match scalings(kernel).iter().position(|known| *known == scaling) {
        Some(number) => format!("Scaled{number}"),
        None => "Op".to_owned(),
    }
}

/// Statements as one.
pub(super) fn braced(code: &str) -> String {
    format!("{{\n{}}}\n", indented(code, 1))
}

pub(super) fn indented(code: &str, levels: usize) -> String {
    code.lines().map(|line| format!("{}{line}\n", "  ".repeat(levels))).collect()
}
