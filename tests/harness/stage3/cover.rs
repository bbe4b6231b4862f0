//! Pairwise covers: few cases in which every two values of different factors meet that can.

/// Cases, each with a value of every factor (`0..factors[f]` of factor f), such that every two values meet in some case
/// that meet in any valid one. Greedy: each case is for the first pair that none has yet, and has as many further ones as
/// possible.
pub(crate) fn pairwise(factors: &[usize], valid: impl Fn(&[usize]) -> bool) -> Vec<Vec<usize>> {
    let pairs = Pairs::new(factors);
    // By the first factor's value: nearly every case is chosen for a pair with one.
    let mut all: Vec<Vec<Vec<usize>>> = vec![Vec::new(); factors.first().copied().unwrap_or(0)];
    let mut open = vec![false; pairs.values * pairs.values];
    for case in product(factors).into_iter().filter(|case| valid(case)) {
        pairs.each(&case, |pair| open[pair] = true);
        all[case[0]].push(case);
    }
    let mut cases = Vec::new();
    let mut first = 0;
    while let Some(next) = open[first..].iter().position(|&open| open) {
        first += next;
        let [(f, x), (g, y)] = [first / pairs.values, first % pairs.values].map(|value| pairs.factor(value));
        let among = if f == 0 { &all[x..=x] } else { &all[..] };
        let fits = among.iter().flatten().filter(|case| case[f] == x && case[g] == y);
        let news = |case: &&Vec<usize>| {
            let mut news = 0;
            pairs.each(case, |pair| news += usize::from(open[pair]));
            news
        };
        // Of equally good ones the first: there is no chance in it.
        let Some(best) = fits.rev().max_by_key(news) else { break };
        pairs.each(best, |pair| open[pair] = false);
        cases.push(best.clone());
    }
    cases
}

/// Numbers of pairs of values of different factors, in order.
struct Pairs {
    /// The number of each factor's first value.
    firsts: Vec<usize>,
    /// Values of all factors.
    values: usize,
}

impl Pairs {
    fn new(factors: &[usize]) -> Pairs {
        let firsts = (0..factors.len()).map(|factor| factors[..factor].iter().sum()).collect();
        Pairs { firsts, values: factors.iter().sum() }
    }

    /// The factor and the value that have this number.
    fn factor(&self, number: usize) -> (usize, usize) {
        let factor = self.firsts.iter().rposition(|&first| first <= number).unwrap_or(0);
        (factor, number - self.firsts[factor])
    }

    /// Calls `act` with every pair of a case.
    fn each(&self, case: &[usize], mut act: impl FnMut(usize)) {
        for g in 0..case.len() {
            for f in 0..g {
                act((self.firsts[f] + case[f]) * self.values + self.firsts[g] + case[g]);
            }
        }
    }
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
