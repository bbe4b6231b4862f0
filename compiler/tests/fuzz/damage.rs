//! What happens to a text.

/// A seeded sequence.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ z >> 29
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Numbers that nothing has so many of, and some that are no numbers.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "7",
    "33",
    "64",
    "4096",
    "4097",
    "65536",
    "1000000000",
    "2147483648",
    "4294967295",
    "4294967296",
    "18446744073709551616",
    "-1",
    "-9223372036854775809",
];

/// A text with one to three changes.
pub(crate) fn damaged(text: &str, words: &[&str], random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..1 + random.below(3) {
        if text.is_empty() {
            break;
        }
        text = match random.below(8) {
            0 => bytes(&text, random),
            1 => numbers(&text, random),
            2 => numbers(&text, random),
            3 => lines(&text, random),
            _ => tokens(&text, words, random),
        };
    }
    text
}

/// A byte replaced, a piece left out, or the rest cut off.
fn bytes(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = random.below(bytes.len());
    match random.below(3) {
        _ if bytes.is_empty() => {}
        0 => bytes[at] = (random.below(256)) as u8,
        1 => drop(bytes.drain(at..(at + 1 + random.below(12)).min(bytes.len()))),
        _ => bytes.truncate(at),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text in words, numbers, marks and blanks.
fn parts(text: &str) -> Vec<&str> {
    let sort = |c: char| match c {
        c if c.is_ascii_digit() => 0,
        c if c.is_alphabetic() || c == '_' => 1,
        c if c.is_whitespace() => 2,
        _ => 3,
    };
    let mut parts = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in text.char_indices() {
        if last.is_some_and(|last| last != sort(c) || last == 3) {
            parts.push(&text[start..at]);
            start = at;
        }
        last = Some(sort(c));
    }
    parts.push(&text[start..]);
    parts
}

/// A number replaced by another of the text, or by one beyond reason.
fn numbers(text: &str, random: &mut Random) -> String {
    let mut parts = parts(text);
    let is_number = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    let found: Vec<usize> = (0..parts.len()).filter(|&i| is_number(&parts[i])).collect();
    if found.is_empty() {
        return text.to_owned();
    }
    let (at, from) = (found[random.below(found.len())], found[random.below(found.len())]);
    parts[at] = if random.below(2) == 0 { parts[from] } else { NUMBERS[random.below(NUMBERS.len())] };
    parts.concat()
}

/// A word left out, doubled, exchanged or replaced.
fn tokens(text: &str, words: &[&str], random: &mut Random) -> String {
    let mut parts = parts(text);
    let (a, b) = (random.below(parts.len()), random.below(parts.len()));
    match random.below(5) {
        0 => drop(parts.remove(a)),
        1 => parts.insert(b, parts[a]),
        2 => parts.swap(a, b),
        3 => parts[a] = NUMBERS[random.below(NUMBERS.len())],
        _ => parts[a] = words[random.below(words.len())],
    }
    parts.concat()
}

/// A line left out, doubled or moved.
fn lines(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (a, b) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(3) {
        0 if lines.len() > 1 => drop(lines.remove(a)),
        1 => lines.insert(b, lines[a]),
        _ => lines.swap(a, b),
    }
    lines.concat()
}
