//! What copies by the driver take, which no kernel is faster than.

use super::CheckContext;
use super::buffers;
use super::report::Report;
use quadrille_runtime::{Error, Window, World};
use std::time::Instant;

/// Copies in a row.
const COPIES: u32 = 20;

pub(super) fn check(context: &CheckContext<'_>, report: &mut Report) {
    match context.place.world(2) {
        Err(error) if error.is_missing() => report.skip(error),
        Err(error) => report.fail(error),
        Ok(world) => {
            if let Err(error) = run(&world, context, report) {
                report.fail(error);
            }
        }
    }
}

fn run(world: &World, context: &CheckContext<'_>, report: &mut Report) -> Result<(), Error> {
    let bytes = context.scale.copied_bytes;
    let session = world.session()?;
    let [from, to] = [buffers::windows(&session, bytes)?, buffers::windows(&session, bytes)?];
    let data: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
    from[0].write(&data)?;
    let mut copy = |what: &str, to: &Window| -> Result<(), Error> {
        let started = Instant::now();
        let elapsed = to.copy_from(&from[0], COPIES)?;
        report.copy(context.place, what, bytes, elapsed.unwrap_or_else(|| started.elapsed()));
        if to.read()? == data {
            report.good(1)
        } else {
            report.fail(format!("a copy {what} is not what it is of"))
        }
        Ok(())
    };
    copy("within a rank", &to[0])?;
    copy("to another rank", &to[1])
}
