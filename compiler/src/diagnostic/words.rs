//! Wording that messages share.

/// The parts of a list that are named; the rest is counted.
const NAMED: usize = 8;

/// `1 chunk`, `8 chunks`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Ascending numbers with runs of three and more folded: `0`, `2 to 5`, `9`.
pub(crate) fn runs(ascending: &[u32]) -> Vec<String> {
    ascending
        .chunk_by(|a, b| a + 1 == *b)
        .flat_map(|run| match run {
            [first, _, .., last] => vec![format!("{first} to {last}")],
            short => short.iter().map(u32::to_string).collect(),
        })
        .collect()
}

/// `a`, `a and b`, `a, b and c`; a long list ends in `and 12 more`.
pub(crate) fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] if parts.len() <= NAMED => format!("{} and {last}", head.join(", ")),
        _ => format!("{} and {} more", parts[..NAMED - 1].join(", "), parts.len() - NAMED + 1),
    }
}

/// `rank 3`, `ranks 1 to 7`, `ranks 0, 2 and 5`, `all 8 ranks`: some of the ranks `0..world`, ascending.
pub(crate) fn ranks(ascending: &[u32], world: u32) -> String {
    match ascending {
        [only] => format!("rank {only}"),
        all if all.len() == world as usize => format!("all {world} ranks"),
        some => format!("ranks {}", list(&runs(some))),
    }
}

/// `the input of rank 3`, `the inputs of ranks 1 to 7`.
pub(crate) fn inputs(ascending: &[u32], world: u32) -> String {
    let plural = if ascending.len() == 1 { "" } else { "s" };
    format!("the input{plural} of {}", ranks(ascending, world))
}

/// `twice`, `3-fold`. A saturated count is named as such.
pub(crate) fn times(n: u64) -> String {
    match n {
        2 => "twice".to_owned(),
        u64::MAX => "more often than can be counted".to_owned(),
        _ => format!("{n}-fold"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_runs_of_three_and_more() {
        assert_eq!(ranks(&[3], 8), "rank 3");
        assert_eq!(ranks(&[0, 1], 8), "ranks 0 and 1");
        assert_eq!(ranks(&[1, 2, 3, 4, 5, 6, 7], 8), "ranks 1 to 7");
        assert_eq!(ranks(&[0, 2, 5], 8), "ranks 0, 2 and 5");
        assert_eq!(ranks(&[0, 2, 3, 4, 6, 7], 8), "ranks 0, 2 to 4, 6 and 7");
        assert_eq!(ranks(&[0, 1], 2), "all 2 ranks");
        assert_eq!(ranks(&[0], 1), "rank 0");
    }

    #[test]
    fn counts_the_end_of_a_long_list() {
        let odd: Vec<u32> = (0..20).map(|i| 2 * i + 1).collect();
        assert_eq!(ranks(&odd, 64), "ranks 1, 3, 5, 7, 9, 11, 13 and 13 more");
        assert_eq!(ranks(&odd[..8], 64), "ranks 1, 3, 5, 7, 9, 11, 13 and 15");
    }
}
