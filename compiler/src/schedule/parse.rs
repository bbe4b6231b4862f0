//! Reads a schedule's text form back.

use super::{
    Action, Arrival, Block, Connection, Counter, CounterKind, FifoMessage, Multicast, Operand, Schedule,
    Step, combines, sizing,
};
use crate::options::Protocol;
use crate::program::OpId;
use crate::program::ids::{BlockId, Buffer, Rank, Slice, ThreadBlock};
use crate::program::kind::{Kind, Shape};
use crate::schedule::SLOTS;
use crate::schedule::text::slot_word;
use std::fmt::Display;

/// The most ranks, and the most blocks a rank, of a schedule text. More are refused before anything is allocated for them.
const MOST: u32 = 4096;

/// The largest number of a rank, block, chunk, message or operation, and of signals in a call.
const LARGEST: u32 = 1 << 24;

/// The error for a text that is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The problem: what was expected, and what was found.
    pub problem: String,
}

impl Schedule {
    /// Parses the text form. `#` notes, blank lines and lines that begin with `//` are free; blocks stand in order.
    pub fn parse(text: &str) -> Result<Schedule, ParseError> {
        let says = |line: &str| !line.trim().is_empty() && !line.starts_with("//");
        let mut lines = (1u32..).zip(text.lines()).filter(|(_, line)| says(line));
        let Some((number, first)) = lines.next() else {
            return Err(ParseError {
                line: 1,
                column: 1,
                problem: "an empty text is no schedule".to_owned(),
            });
        };
        let mut schedule = header(&mut Cursor::new(number, first))?;
        for (number, line) in lines {
            let mut at = Cursor::new(number, line);
            if line.starts_with([' ', '\t']) {
                content(&mut schedule, &mut at)?;
            } else {
                open_block(&mut schedule, &mut at)?;
            }
            at.end()?;
        }
        Ok(schedule)
    }
}

fn header(at: &mut Cursor<'_>) -> Result<Schedule, ParseError> {
    at.token("schedule")?;
    let name = at.word("the collective's name")?.to_owned();
    at.token(":")?;
    let mark = at.mark();
    let kind: Kind = at.word("a kind of collective")?.parse().map_err(|e| at.error_at(mark, e))?;
    at.token(",")?;
    let ranks = at.count("the number of ranks")?;
    at.token(if ranks == 1 { "rank" } else { "ranks" })?;
    at.token(",")?;
    let chunks = at.count("the number of chunks")?;
    at.token(if chunks == 1 { "chunk" } else { "chunks" })?;
    at.token(",")?;
    let mut shape = Shape::new(kind, ranks, chunks);
    if at.take("in place") {
        shape.in_place = true;
        at.token(",")?;
    }
    if at.take("root") {
        shape.root = at.rank()?;
        at.token(",")?;
    }
    let (mut tile, mut slots, mut instances) = (None, SLOTS, 1);
    while !at.take("block cap") {
        if at.take("tile") {
            let mark = at.mark();
            let bytes = at.number("the bytes of a tile")?;
            if bytes == 0 || !bytes.is_multiple_of(16) {
                return Err(at.error_at(mark, "a tile is a multiple of 16 bytes"));
            }
            tile = Some(u64::from(bytes));
            at.token(",")?;
            continue;
        }
        let number =
            at.count("`block cap`, `tile`, or a number of nodes, slots, instances or scratch chunks")?;
        if at.take("nodes") {
            shape.nodes = number;
        } else if at.take("slots") {
            slots = number;
        } else if at.take("instances") {
            instances = number;
        } else {
            at.token(if number == 1 { "scratch chunk" } else { "scratch chunks" })?;
            shape.scratch = number;
        }
        at.token(",")?;
    }
    let block_cap = at.count("the block cap")?;
    at.end()?;
    let blocks = vec![Vec::new(); ranks as usize];
    Ok(Schedule { name, shape, block_cap, tile, slots, instances, blocks })
}

fn open_block(schedule: &mut Schedule, at: &mut Cursor<'_>) -> Result<(), ParseError> {
    let mark = at.mark();
    let place = at.place()?;
    let last = schedule.blocks.iter().rposition(|blocks| !blocks.is_empty()).unwrap_or(0);
    let Some(blocks) = schedule.blocks.get_mut(place.rank.0 as usize) else {
        let problem = format!("{} is outside the world of {} ranks", place.rank, schedule.shape.ranks);
        return Err(at.error_at(mark, problem));
    };
    if (place.rank.0 as usize) < last || place.block.0 as usize != blocks.len() {
        return Err(
            at.error_at(mark, format!("{place} is out of order: ranks ascend, and blocks count from b0"))
        );
    }
    if place.block.0 >= MOST {
        return Err(at.error_at(mark, format!("more than {MOST} blocks a rank")));
    }
    blocks.push(Block::default());
    Ok(())
}

fn content(schedule: &mut Schedule, at: &mut Cursor<'_>) -> Result<(), ParseError> {
    let mark = at.mark();
    let Some((rank, blocks)) = schedule.blocks.iter_mut().enumerate().rfind(|(_, b)| !b.is_empty()) else {
        return Err(at.error_at(mark, "a step outside a block: a line like `r0.b0` comes first"));
    };
    let own = BlockId { rank: Rank(rank as u32), block: ThreadBlock(blocks.len() as u32 - 1) };
    let block = &mut blocks[own.block.0 as usize];
    if at.take("expect") {
        let kind = at.counter_kind()?;
        let counter = Counter { kind, writer: at.place()?, waiter: own };
        at.token("+=")?;
        block.expects.push((counter, at.index("by how much")?));
        return Ok(());
    }
    if !block.expects.is_empty() {
        return Err(at.error_at(mark, "a step after the block's `expect` lines"));
    }
    let action = action(at, own, &schedule.shape)?;
    let transfer = at.take("of");
    if transfer && !at.rest().starts_with('#') {
        return Err(at.expected("an operation like `#0`"));
    }
    let origin = if at.take("#") { Some(OpId(at.index("the operation's number")?)) } else { None };
    block.steps.push(Step { action, origin, transfer });
    Ok(())
}

fn action(at: &mut Cursor<'_>, own: BlockId, shape: &Shape) -> Result<Action, ParseError> {
    if at.take("wait") {
        return Ok(Action::Wait(at.list(",", |at| {
            let kind = at.counter_kind()?;
            let counter = Counter { kind, writer: at.place()?, waiter: own };
            at.token(">=")?;
            Ok(Arrival { counter, value: at.value(kind)? })
        })?));
    }
    if at.take("signal") {
        return Ok(Action::Signal(at.list(",", |at| {
            let kind = at.counter_kind()?;
            Ok(Counter { kind, writer: own, waiter: at.place()? })
        })?));
    }
    if at.take("sync") {
        return Ok(Action::BlockSync);
    }
    let mark = at.mark();
    let reduce = at.take("reduce");
    if !reduce && !at.take("copy") {
        return Err(at.expected("`wait`, `signal`, `copy`, `reduce`, `sync` or `expect`"));
    }
    let sources = at.list("+", |at| {
        at.operand(shape.ranks, |protocol, writer| Connection { protocol, writer, reader: own })
    })?;
    if reduce != combines(&sources) {
        return Err(at.error_at(mark, "a `copy` has one source, a `reduce` several or one `multimem`"));
    }
    at.token("->")?;
    let dests = at.list(",", |at| {
        at.operand(shape.ranks, |protocol, reader| Connection { protocol, writer: own, reader })
    })?;
    let position = match sizing(&sources, &dests) {
        Some(slice) => slice.start % shape.chunks.max(1),
        None => {
            at.token("at")?;
            at.index("a chunk's position in its unit")?
        }
    };
    Ok(Action::Move { sources, dests, position })
}

/// A line being read.
struct Cursor<'a> {
    number: u32,
    line: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(number: u32, line: &'a str) -> Cursor<'a> {
        Cursor { number, line, at: 0 }
    }

    fn rest(&mut self) -> &'a str {
        let rest = &self.line[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// Returns the beginning of the next token.
    fn mark(&mut self) -> usize {
        self.rest();
        self.at
    }

    fn error_at(&self, mark: usize, problem: impl Display) -> ParseError {
        let column = self.line[..mark].chars().count() as u32 + 1;
        ParseError { line: self.number, column, problem: problem.to_string() }
    }

    fn expected(&mut self, what: impl Display) -> ParseError {
        let rest = self.rest();
        let found = rest.split_whitespace().next();
        let found: String = found.map_or("the end of the line".to_owned(), |w| {
            let short: String = w.chars().take(24).collect();
            format!("`{short}`")
        });
        self.error_at(self.at, format!("expected {what}, found {found}"))
    }

    /// Consumes `token` if it comes next; a word must end where the token does.
    fn take(&mut self, token: &str) -> bool {
        let Some(after) = self.rest().strip_prefix(token) else { return false };
        let word = |c: char| c.is_alphanumeric() || c == '_';
        if token.ends_with(word) && after.starts_with(word) {
            return false;
        }
        self.at += token.len();
        true
    }

    fn token(&mut self, token: &str) -> Result<(), ParseError> {
        if self.take(token) { Ok(()) } else { Err(self.expected(format!("`{token}`"))) }
    }

    fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.expected(what));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn number(&mut self, what: &str) -> Result<u32, ParseError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        match rest[..end].parse() {
            Ok(number) => {
                self.at += end;
                Ok(number)
            }
            Err(_) => Err(self.expected(what)),
        }
    }

    /// Reads a number of a rank, block, chunk, message or operation.
    fn index(&mut self, what: &str) -> Result<u32, ParseError> {
        let mark = self.mark();
        let index = self.number(what)?;
        if index > LARGEST {
            return Err(self.error_at(mark, format!("{index} is beyond {LARGEST}, the largest number")));
        }
        Ok(index)
    }

    fn count(&mut self, what: &str) -> Result<u32, ParseError> {
        let mark = self.mark();
        let count = self.number(what)?;
        if !(1..=MOST).contains(&count) {
            return Err(self.error_at(mark, format!("{count} for {what} is outside 1..={MOST}")));
        }
        Ok(count)
    }

    fn rank(&mut self) -> Result<Rank, ParseError> {
        if !self.rest().starts_with('r') {
            return Err(self.expected("a rank like `r0`"));
        }
        self.at += 1;
        Ok(Rank(self.index("a rank like `r0`")?))
    }

    fn place(&mut self) -> Result<BlockId, ParseError> {
        let rank = self.rank()?;
        self.token(".")?;
        if !self.rest().starts_with('b') {
            return Err(self.expected("a block like `r0.b0`"));
        }
        self.at += 1;
        Ok(BlockId { rank, block: ThreadBlock(self.index("a block like `r0.b0`")?) })
    }

    fn counter_kind(&mut self) -> Result<CounterKind, ParseError> {
        if self.take("credit") {
            let flagged = [Protocol::Ll, Protocol::Ll128].into_iter().find(|p| self.take(p.name()));
            return Ok(CounterKind::Credit(flagged.unwrap_or(Protocol::Simple)));
        }
        let found = [CounterKind::Start, CounterKind::Data, CounterKind::Message]
            .into_iter()
            .find(|kind| self.take(kind.name()));
        found.ok_or_else(|| self.expected("`start`, `data`, `message` or `credit`"))
    }

    /// Reads a value waited for. Only credits may be negative: they belong to messages of earlier tiles.
    fn value(&mut self, kind: CounterKind) -> Result<i32, ParseError> {
        let negative = matches!(kind, CounterKind::Credit(_)) && self.take("-");
        let mark = self.mark();
        let number = self.number("the value waited for")?;
        match i32::try_from(number) {
            Ok(value) => Ok(if negative { -value } else { value }),
            Err(_) => Err(self.error_at(mark, format!("{number} is beyond what a call can count"))),
        }
    }

    /// Reads a slice or a message. The connection of a message follows from the block at its other end.
    fn operand(
        &mut self,
        ranks: u32,
        connection: impl Fn(Protocol, BlockId) -> Connection,
    ) -> Result<Operand, ParseError> {
        if self.take("multimem") {
            let buffer = self.buffer()?;
            ["[", "..", "]"].into_iter().try_for_each(|token| self.token(token))?;
            let (start, len) = self.chunks()?;
            return Ok(Operand::Multicast(Multicast { buffer, start, len, ranks }));
        }
        let Some(protocol) = Protocol::ALL.into_iter().find(|&p| self.take(slot_word(p))) else {
            return Ok(Operand::Memory(self.slice()?));
        };
        let connection = connection(protocol, self.place()?);
        self.token("[")?;
        let number = self.index("the message's number")?;
        self.token("]")?;
        Ok(Operand::Message(FifoMessage { connection, number }))
    }

    fn buffer(&mut self) -> Result<Buffer, ParseError> {
        let found = Buffer::ALL.into_iter().find(|b| self.take(b.name()));
        found.ok_or_else(|| self.expected("a slice like `data[0][1]`, or a message like `slot r1.b0[0]`"))
    }

    fn slice(&mut self) -> Result<Slice, ParseError> {
        let buffer = self.buffer()?;
        self.token("[")?;
        let rank = Rank(self.index("a rank")?);
        self.token("]")?;
        let (start, len) = self.chunks()?;
        Ok(Slice { buffer, rank, start, len })
    }

    /// Reads `[3]` or `[3..5]`; returns the first chunk and the number of chunks.
    fn chunks(&mut self) -> Result<(u32, u32), ParseError> {
        self.token("[")?;
        let mark = self.mark();
        let start = self.index("a chunk")?;
        let end = if self.take("..") { self.index("the range's end")? } else { start + 1 };
        if end <= start {
            return Err(self.error_at(mark, format!("the range {start}..{end} is empty")));
        }
        self.token("]")?;
        Ok((start, end - start))
    }

    fn list<T>(
        &mut self,
        separator: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut items = vec![item(self)?];
        while self.take(separator) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn end(&mut self) -> Result<(), ParseError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.expected("the end of the line")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "schedule s: all_reduce, 2 ranks, 1 chunk, block cap 32";

    /// Returns the error for a text.
    fn refused(text: &str) -> String {
        match Schedule::parse(text) {
            Ok(schedule) => panic!("{text:?} is read as\n{schedule}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn scratch_and_nodes() {
        let head =
            "schedule s: all_reduce, 4 ranks, 2 chunks, root r1, 2 nodes, 3 scratch chunks, block cap 32";
        let text = format!(
            "{head}\nr0.b0\n  copy input[0][1] -> scratch[1][2]\n  copy scratch[0][2] -> scratch[1][0] at 1    #4\n"
        );
        assert_eq!(Schedule::parse(&text).unwrap().to_string(), text);
        let one = head.replace("3 scratch chunks", "1 scratch chunk");
        assert_eq!(Schedule::parse(&one).unwrap().shape.scratch, 1);
    }

    #[test]
    fn tiles_slots_and_messages() {
        let text = "schedule s: all_reduce, 2 ranks, 1 chunk, in place, 4 slots, tile 4096, 3 instances, block cap 32\n\
                    r0.b0\n  wait credit r1.b0 >= -3, credit LL r1.b1 >= 0, credit LL128 r1.b0 >= 1\n  \
                    copy data[0][0] -> slot r1.b0[0], LL r1.b1[1]    of #0\n  sync\n  signal message r1.b0\n  \
                    expect credit LL128 r1.b0 += 1\n\
                    r1.b0\n  wait message r0.b0 >= 1\n  \
                    reduce data[1][0] + slot r0.b0[0] + LL128 r0.b0[0] -> data[1][0]    #0\n  \
                    signal credit r0.b0, credit LL128 r0.b0\n";
        assert_eq!(Schedule::parse(text).unwrap().to_string(), text);
        let wrong = text.replace("tile 4096", "tile 40");
        assert_eq!(refused(&wrong), "line 1, column 67: a tile is a multiple of 16 bytes");
    }

    #[test]
    fn chunks_of_all_ranks() {
        let text = "schedule s: all_reduce, 2 ranks, 2 chunks, in place, block cap 32\n\
                    r0.b0\n  reduce multimem data[..][1] -> multimem data[..][1]    #0\n  \
                    copy data[0][0] -> multimem data[..][0..2]    #0\n\
                    r1.b0\n  reduce multimem data[..][0] -> data[1][0]    #1\n";
        assert_eq!(Schedule::parse(text).unwrap().to_string(), text);
        let wrong = text.replace("[..][1] ->", "[0][1] ->");
        assert_eq!(refused(&wrong), "line 3, column 24: expected `..`, found `0][1]`");
    }

    #[test]
    fn comments_and_blank_lines_are_counted_but_not_read() {
        let text = format!("// a comment\n\n{HEADER}\n  \nr0.b0\n// another\n  sync\nr1.b0\n");
        let plain = format!("{HEADER}\nr0.b0\n  sync\nr1.b0\n");
        assert_eq!(Schedule::parse(&text).unwrap().to_string(), plain);
        let wrong = text.replace("sync", "synch");
        assert!(refused(&wrong).starts_with("line 7, column 3: "), "{}", refused(&wrong));
    }

    #[test]
    fn texts_without_a_schedule() {
        for text in ["", "\n \n", "// nothing but a comment\n"] {
            assert_eq!(refused(text), "line 1, column 1: an empty text is no schedule");
        }
    }

    #[test]
    fn headers() {
        for (header, expected) in [
            ("program s: ", "column 1: expected `schedule`, found `program`"),
            ("schedule : all_reduce", "column 10: expected the collective's name, found `:`"),
            ("schedule s: all_reduce; 2", "column 23: expected `,`, found `;`"),
            ("schedule s: all_reduce, two ranks", "column 25: expected the number of ranks, found `two`"),
            ("schedule s: all_reduce, 0 ranks", "column 25: 0 for the number of ranks is outside 1..=4096"),
            (
                "schedule s: all_reduce, 5000 ranks",
                "column 25: 5000 for the number of ranks is outside 1..=4096",
            ),
            (
                "schedule s: all_reduce, 2 ranks, 1 chunk",
                "column 41: expected `,`, found the end of the line",
            ),
            (
                "schedule s: broadcast, 2 ranks, 1 chunk, root 1, block cap 32",
                "column 47: expected a rank like `r0`, found `1,`",
            ),
            (&format!("{HEADER} 33"), "column 56: expected the end of the line, found `33`"),
        ] {
            assert_eq!(refused(header), format!("line 1, {expected}"), "{header}");
        }
        let unknown = refused("schedule s: allreduce, 2 ranks, 1 chunk, block cap 32");
        assert!(unknown.contains("all_reduce") && unknown.starts_with("line 1, column 13: "), "{unknown}");
    }

    #[test]
    fn blocks() {
        for (blocks, expected) in [
            ("  sync", "line 2, column 3: a step outside a block: a line like `r0.b0` comes first"),
            ("r2.b0", "line 2, column 1: r2 is outside the world of 2 ranks"),
            ("r0.b1", "line 2, column 1: r0.b1 is out of order: ranks ascend, and blocks count from b0"),
            (
                "r1.b0\nr0.b0",
                "line 3, column 1: r0.b0 is out of order: ranks ascend, and blocks count from b0",
            ),
            ("r0", "line 2, column 3: expected `.`, found the end of the line"),
            ("r0.0", "line 2, column 4: expected a block like `r0.b0`, found `0`"),
            ("block 0", "line 2, column 1: expected a rank like `r0`, found `block`"),
        ] {
            assert_eq!(refused(&format!("{HEADER}\n{blocks}")), expected, "{blocks}");
        }
    }

    #[test]
    fn steps() {
        for (step, expected) in [
            (
                "barrier",
                "column 3: expected `wait`, `signal`, `copy`, `reduce`, `sync` or `expect`, found `barrier`",
            ),
            ("wait", "column 7: expected `start`, `data`, `message` or `credit`, found the end of the line"),
            (
                "wait slot r1.b0 >= 1",
                "column 8: expected `start`, `data`, `message` or `credit`, found `slot`",
            ),
            ("wait credit r1.b0 >= 4000000000", "column 24: 4000000000 is beyond what a call can count"),
            ("copy slot r1[0] -> data[0][0]", "column 15: expected `.`, found `[0]`"),
            ("copy LL r1.b0 -> data[0][0]", "column 17: expected `[`, found `->`"),
            (
                "copy input[0][0] -> output[0][0] of 3",
                "column 39: expected an operation like `#0`, found `3`",
            ),
            ("wait data r1.b0 > 1", "column 19: expected `>=`, found `>`"),
            ("wait data r1.b0 >= -1", "column 22: expected the value waited for, found `-1`"),
            ("signal data r1", "column 17: expected `.`, found the end of the line"),
            (
                "copy buffer[0][0] -> data[0][0]",
                "column 8: expected a slice like `data[0][1]`, or a message like `slot r1.b0[0]`, found `buffer[0][0]`",
            ),
            ("copy input[0] -> output[0][0]", "column 17: expected `[`, found `->`"),
            ("copy input[0][0]", "column 19: expected `->`, found the end of the line"),
            ("copy input[0][1..1] -> output[0][1]", "column 17: the range 1..1 is empty"),
            (
                "copy input[0][0] + input[1][0] -> output[0][0]",
                "column 3: a `copy` has one source, a `reduce` several or one `multimem`",
            ),
            (
                "reduce input[0][0] -> output[0][0]",
                "column 3: a `copy` has one source, a `reduce` several or one `multimem`",
            ),
            (
                "copy input[0][0] -> output[0][0] #",
                "column 37: expected the operation's number, found the end of the line",
            ),
            ("copy scratch[0][0] -> scratch[1][0]", "column 38: expected `at`, found the end of the line"),
            ("sync sync", "column 8: expected the end of the line, found `sync`"),
            ("expect data r1.b0 = 1", "column 21: expected `+=`, found `=`"),
            ("expect data r1.b0 += 1\n  sync", "column 3: a step after the block's `expect` lines"),
        ] {
            let line = if step.contains('\n') { 4 } else { 3 };
            let found = refused(&format!("{HEADER}\nr0.b0\n  {step}"));
            assert_eq!(found, format!("line {line}, {expected}"), "{step}");
        }
    }
}
