//! Collectives that `macro_rules!` makes: they have no text of their own.

macro_rules! gathers {
    ($name:ident, $first:expr, $each:pat => $from:expr) => {
        #[quadrille::collective(all_gather, ranks = [1, 2, 3])]
        pub(crate) fn $name() {
            let shift = $first;
            for $each in 0..RANKS {
                let from = $from;
                output[..][from] = input[from][0];
                assert!(from >= shift - 1, "from {from}");
            }
        }
    };
}

gathers!(gathers_forwards, 1, r => r);
gathers!(gathers_backwards, { 3 - 2 }, s => (RANKS - s) - 1);
