//! The message sizes that each schedule of a collective serves.

use super::{ScheduleOptions, Sizes};
use crate::diagnostic::{Check, Diagnostic};

/// See [`super::sizes`].
pub(super) fn resolve(schedules: &[ScheduleOptions]) -> Result<Vec<Sizes>, Vec<Diagnostic>> {
    let ends: Vec<Sizes> = (0..schedules.len()).map(|i| ends(schedules, i)).collect();
    let mut findings = Vec::new();
    let mut report = |i: usize, message: String, help: &str| {
        findings.push(Diagnostic::new(Check::Syntax, schedules[i].loc, message).help(help));
    };
    for (i, sizes) in ends.iter().enumerate() {
        if sizes.above.is_some_and(|above| above >= sizes.up_to) {
            let message = format!("this schedule serves no message: {}", show(sizes));
            report(i, message, "`from` has to be below `up_to`");
        }
    }
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by_key(|&i| (ends[i].above.map_or(0, |above| above.saturating_add(1)), ends[i].up_to));
    let mut served: Option<usize> = None;
    for &i in &order {
        let begins = ends[i].above;
        match served {
            None if begins.is_some() => {
                let message = format!("no schedule serves messages of up to {} bytes", begins.unwrap_or(0));
                report(i, message, "leave out the `from` of the schedule for the smallest messages");
            }
            Some(last) if begins.is_none_or(|above| above < ends[last].up_to) => {
                let (first, second) = (show(&ends[last]), show(&ends[i]));
                let message = format!("two schedules serve the same messages: {first}, and {second}");
                report(i.max(last), message, "give them sizes by `from` and `up_to`");
            }
            Some(last) if begins.is_some_and(|above| above > ends[last].up_to) => {
                let message = format!(
                    "no schedule serves messages of more than {} and up to {} bytes",
                    ends[last].up_to,
                    begins.unwrap_or(0)
                );
                report(i.max(last), message, "let one begin where the other ends");
            }
            _ => {}
        }
        if served.is_none_or(|last| ends[last].up_to < ends[i].up_to) {
            served = Some(i);
        }
    }
    if let Some(last) = served.filter(|&last| ends[last].up_to < u64::MAX) {
        let message = format!("no schedule serves messages of more than {} bytes", ends[last].up_to);
        report(last, message, "leave out the `up_to` of the schedule for the largest messages");
    }
    if findings.is_empty() { Ok(ends) } else { Err(findings) }
}

/// Returns the sizes of one schedule. An open end is taken from its neighbours.
fn ends(schedules: &[ScheduleOptions], i: usize) -> Sizes {
    let own = &schedules[i];
    let value = |given: Option<super::Given<u64>>| given.map(|given| given.value);
    let others = || schedules.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, other)| other);
    let (from, up_to) = (value(own.from), value(own.up_to));
    let below = |limit: Option<u64>| {
        let ends = others().filter_map(|other| value(other.up_to));
        ends.filter(|&end| limit.is_none_or(|limit| end < limit)).max()
    };
    let above = from.or_else(|| below(up_to));
    let up_to = up_to.or_else(|| {
        let begins = others().filter_map(|other| value(other.from));
        begins.filter(|&begin| above.is_none_or(|above| begin > above)).min()
    });
    Sizes { above, up_to: up_to.unwrap_or(u64::MAX) }
}

/// `up to 262144 bytes`.
fn show(sizes: &Sizes) -> String {
    match (sizes.above, sizes.up_to) {
        (None, u64::MAX) => "all sizes".to_owned(),
        (None, up_to) => format!("up to {up_to} bytes"),
        (Some(above), u64::MAX) => format!("more than {above} bytes"),
        (Some(above), up_to) => format!("more than {above} and up to {up_to} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Given;
    use super::*;
    use crate::diagnostic::Loc;

    fn schedule(from: Option<u64>, up_to: Option<u64>) -> ScheduleOptions {
        let given = |value: Option<u64>| value.map(|value| Given { value, loc: Loc::default() });
        ScheduleOptions { from: given(from), up_to: given(up_to), ..ScheduleOptions::default() }
    }

    fn served(schedules: &[ScheduleOptions], bytes: u64) -> Vec<usize> {
        let sizes = resolve(schedules).unwrap();
        (0..sizes.len()).filter(|&i| sizes[i].contains(bytes)).collect()
    }

    #[test]
    fn every_size_has_one_schedule() {
        let lists = [
            vec![schedule(None, None)],
            vec![schedule(None, Some(100)), schedule(None, None)],
            vec![schedule(Some(100), None), schedule(None, None)],
            vec![schedule(None, Some(10)), schedule(None, Some(100)), schedule(Some(100), None)],
        ];
        for list in lists {
            for bytes in [0, 1, 10, 11, 99, 100, 101, 1 << 40, u64::MAX] {
                assert_eq!(served(&list, bytes).len(), 1, "{bytes} of {list:?}");
            }
        }
        assert_eq!(served(&[schedule(None, Some(100)), schedule(Some(100), None)], 100), [0]);
        assert_eq!(served(&[schedule(None, Some(100)), schedule(Some(100), None)], 101), [1]);
    }

    #[test]
    fn overlaps_and_holes_are_findings() {
        let wrong = [
            (vec![schedule(None, None), schedule(None, None)], "two schedules"),
            (vec![schedule(None, Some(100)), schedule(Some(50), None)], "two schedules"),
            (vec![schedule(None, Some(100)), schedule(Some(200), None)], "more than 100 and up to 200"),
            (vec![schedule(None, Some(100))], "more than 100 bytes"),
            (vec![schedule(Some(100), None)], "up to 100 bytes"),
            (
                vec![schedule(None, Some(10)), schedule(Some(10), Some(10)), schedule(Some(10), None)],
                "no message",
            ),
        ];
        for (list, text) in wrong {
            let findings = resolve(&list).unwrap_err();
            assert!(findings.iter().any(|f| f.message.contains(text)), "{text}: {findings:?}");
        }
    }
}
