//! Words of CUDA that several parts of the text are made of.

use crate::kernel::{Kernel, KernelAction, Series};
use crate::options::Protocol;
use crate::program::Scaling;
use std::fmt::{self, Write};

/// The protocol's name in device code.
pub(super) fn c_protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Simple => "SIMPLE",
        Protocol::Ll => "LL",
        Protocol::Ll128 => "LL128",
    }
}

/// The thread that a link is of, as a C expression.
pub(super) struct LinkThread {
    pub(super) link: Series,
    pub(super) threads: u32,
}

impl fmt::Display for LinkThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.link.by {
            0 => write!(f, "{}", self.link.start as u32 % self.threads),
            _ => write!(f, "({}) % THREADS", self.link),
        }
    }
}

/// The name of a fn as a C name; only raw identifiers and letters beyond ASCII differ.
pub(super) struct CName<'a>(pub(super) &'a str);

impl fmt::Display for CName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| f.write_char(if c.is_ascii_alphanumeric() { c } else { '_' }))
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
