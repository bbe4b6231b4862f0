//! PTX text -> tokens, each with its line.

use crate::fault::{PtxProblem, PtxProblemKind};

/// A token; text is borrowed from the module's source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// A name, register, directive (with its leading dot) or instruction with all its qualifiers.
    Word(&'a str),
    /// An integer's bits.
    Int(u64),
    /// Bits of an f32 (`0f`).
    F32(u32),
    /// Bits of an f64 (`0d`).
    F64(u64),
    Str(&'a str),
    Punct(char),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spanned<'a> {
    pub(crate) token: Token<'a>,
    pub(crate) line: u32,
    pub(crate) text: &'a str,
}

const MAX_BYTES: usize = 256 << 20;
const MAX_TOKENS: usize = 1 << 24;

fn is_word_start(c: u8) -> bool {
    c.is_ascii_alphabetic() || matches!(c, b'_' | b'$' | b'%' | b'.')
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'%' | b'.')
}

/// Splits the text; the last token is `End`.
pub(crate) fn lex(text: &str) -> Result<Vec<Spanned<'_>>, PtxProblem> {
    if text.len() > MAX_BYTES {
        let kind = PtxProblemKind::Limit { what: "bytes of text", limit: MAX_BYTES as u64 };
        return Err(PtxProblem { line: 1, kind });
    }
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let mut tokens = Vec::with_capacity((text.len() / 4).min(MAX_TOKENS));
    let (mut i, mut line) = (0, 1u32);
    while i < bytes.len() {
        let (start, c) = (i, bytes[i]);
        let token = match c {
            b'\n' => {
                line += 1;
                i += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' => {
                i += 1;
                continue;
            }
            b'/' if at(i + 1) == b'/' => {
                while i < bytes.len() && bytes[i] != b'\n' {
                    i += 1;
                }
                continue;
            }
            b'/' if at(i + 1) == b'*' => {
                let opened = line;
                i += 2;
                while i < bytes.len() && !(bytes[i] == b'*' && at(i + 1) == b'/') {
                    line += u32::from(bytes[i] == b'\n');
                    i += 1;
                }
                if i >= bytes.len() {
                    return Err(syntax(opened, "`*/`", "end of text"));
                }
                i += 2;
                continue;
            }
            b'"' => {
                i += 1;
                while i < bytes.len() && bytes[i] != b'"' && bytes[i] != b'\n' {
                    i += if bytes[i] == b'\\' { 2 } else { 1 };
                }
                let body = text.get(start + 1..i.min(bytes.len()));
                if at(i) != b'"' {
                    return Err(syntax(line, "a closing `\"`", "end of line"));
                }
                i += 1;
                Token::Str(body.unwrap_or(""))
            }
            b'0'..=b'9' => {
                while is_word(at(i)) && at(i) != b'.' {
                    i += 1;
                }
                number(&text[start..i]).ok_or_else(|| PtxProblem {
                    line,
                    kind: PtxProblemKind::Number { text: text[start..i].into() },
                })?
            }
            _ if is_word_start(c) => {
                i += 1;
                loop {
                    if is_word(at(i)) {
                        i += 1;
                    } else if at(i) == b':' && at(i + 1) == b':' {
                        i += 2;
                    } else {
                        break;
                    }
                }
                Token::Word(&text[start..i])
            }
            _ => {
                let Some(c) = text[start..].chars().next() else { break };
                i += c.len_utf8();
                Token::Punct(c)
            }
        };
        if tokens.len() >= MAX_TOKENS {
            let kind = PtxProblemKind::Limit { what: "words and signs", limit: MAX_TOKENS as u64 };
            return Err(PtxProblem { line, kind });
        }
        tokens.push(Spanned { token, line, text: &text[start..i] });
    }
    tokens.push(Spanned { token: Token::End, line, text: "end of text" });
    Ok(tokens)
}

fn syntax(line: u32, expected: &'static str, found: &str) -> PtxProblem {
    PtxProblem { line, kind: PtxProblemKind::Syntax { expected, found: found.into() } }
}

fn number(text: &str) -> Option<Token<'static>> {
    if let Some(hex) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
        return (hex.len() == 8).then(|| u32::from_str_radix(hex, 16).ok().map(Token::F32)).flatten();
    }
    if let Some(hex) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D")) {
        return (hex.len() == 16).then(|| u64::from_str_radix(hex, 16).ok().map(Token::F64)).flatten();
    }
    let digits = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok().map(Token::Int)
}
