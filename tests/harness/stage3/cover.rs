//! Pairwise covers: few cases in which every two values of different factors meet that can.

use std::collections::BTreeSet;

/// Two values: factor and value of each, the smaller factor first.
type Pair = [(usize, usize); 2];

/// Cases, each with a value of every factor (`0..factors[f]` of factor f), such that every two values meet in some case
/// that meet in any valid one. Greedy: each case is for the first pair that none has yet, and has as many further ones as
/// possible.
pub(crate) fn pairwise(factors: &[usize], valid: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
    let all: Vec<Vec<usize>> = product(factors).into_iter().filter(|case| valid(case)).collect();
    let mut open: BTreeSet<Pair> = all.iter().flat_map(|case| pairs(case)).collect();
    let mut cases = Vec::new();
    while let Some(&[(f, x), (g, y)]) = open.first() {
        let fits = all.iter().filter(|case| case[f] == x && case[g] == y);
        let news = |case: &&Vec<usize>| pairs(case).filter(|pair| open.contains(pair)).count();
        // Of equally good ones the first: there is no chance in it.
        let Some(best) = fits.rev().max_by_key(news) else { break };
        for pair in pairs(best) {
            open.remove(&pair);
        }
        cases.push(best.clone());
    }
    cases
}

fn pairs(case: &[usize]) -> impl Iterator<Item = Pair> {
    (0..case.len()).flat_map(move |g| (0..g).map(move |f| [(f, case[f]), (g, case[g])]))
}

/// Every combination.
fn product(factors: &[usize]) -> Vec<Vec<usize>> {
    factors.iter().fold(vec![Vec::new()], |heads, &values| {
        let with = |head: &Vec<usize>| {
            let head = head.clone();
            (0..values).map(move |value| [&head[..], &[value]].concat())
        };
        heads.iter().flat_map(with).collect()
    })
}

/// The check of the tests themselves: all pairs that can meet do, nothing invalid is a case, and cases are few.
pub(crate) fn covers_all_pairs() -> Result<(), libtest_mimic::Failed> {
    // 0 of the first factor goes with even values of the second only, and 1 of it not with 2 of the third.
    let constrained =
        |case: &[usize]| (case[0] > 0 || case[1].is_multiple_of(2)) && !(case[0] == 1 && case[2] == 2);
    let none = |_: &[usize]| true;
    type Valid<'a> = &'a dyn Fn(&[usize]) -> bool;
    let settings: [(&[usize], Valid<'_>); 4] =
        [(&[3, 7, 4, 2], &constrained), (&[5, 7, 10, 2, 6], &none), (&[4], &none), (&[2, 2], &|_| false)];
    for (factors, valid) in settings {
        let cases = pairwise(factors, valid);
        if let Some(case) = cases.iter().find(|case| !valid(case)) {
            return Err(format!("{factors:?}: {case:?} is not valid").into());
        }
        // By the definition, not by the functions above.
        for f in 0..factors.len() {
            for g in f + 1..factors.len() {
                for (x, y) in (0..factors[f]).flat_map(|x| (0..factors[g]).map(move |y| (x, y))) {
                    let meets = |case: &Vec<usize>| case[f] == x && case[g] == y;
                    let can = product(factors).iter().any(|case| meets(case) && valid(case));
                    if can != cases.iter().any(meets) {
                        return Err(format!("{factors:?}: {x} of {f} and {y} of {g}: can meet {can}").into());
                    }
                }
            }
        }
        let mut sorted = factors.to_vec();
        sorted.sort_unstable();
        let least: usize = sorted.iter().rev().take(2).product();
        if cases.len() > 2 * least {
            return Err(format!("{factors:?}: {} cases where {least} might do", cases.len()).into());
        }
    }
    Ok(())
}
