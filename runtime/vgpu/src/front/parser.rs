//! Tokens -> `AstModule`. Nothing recurses, so that depth of text costs no stack.

use crate::arithmetic::types::Ty;
use crate::fault::{PtxProblem, PtxProblemKind, Space};
use crate::front::ast::{
    AstFunction, AstInst, AstModule, AstOperand, AstStatement, AstStatementKind, Init, Var,
};
use crate::front::lexer::{Spanned, Token, lex};

type Result<T> = std::result::Result<T, PtxProblem>;

const MAX_DEPTH: usize = 64;
const MAX_VAR_BYTES: u64 = 1 << 30;

pub(crate) fn parse(text: &str) -> Result<AstModule<'_>> {
    let tokens = lex(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let mut module = AstModule::default();
    while parser.peek() != Token::End {
        parser.item(&mut module)?;
    }
    Ok(module)
}

struct Parser<'t, 'a> {
    tokens: &'t [Spanned<'a>],
    at: usize,
}

impl<'a> Parser<'_, 'a> {
    fn here(&self) -> Spanned<'a> {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> Token<'a> {
        self.here().token
    }

    fn peek_after(&self) -> Token<'a> {
        self.tokens.get(self.at + 1).map_or(Token::End, |t| t.token)
    }

    fn line(&self) -> u32 {
        self.here().line
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Token::Punct(c);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Token::Word(word);
        self.at += usize::from(found);
        found
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T> {
        let here = self.here();
        Err(PtxProblem {
            line: here.line,
            kind: PtxProblemKind::Syntax { expected, found: here.text.into() },
        })
    }

    fn expect(&mut self, c: char, expected: &'static str) -> Result<()> {
        if self.eat(c) { Ok(()) } else { self.expected(expected) }
    }

    fn word(&mut self, expected: &'static str) -> Result<&'a str> {
        match self.peek() {
            Token::Word(word) => {
                self.at += 1;
                Ok(word)
            }
            _ => self.expected(expected),
        }
    }

    fn int(&mut self) -> Result<u64> {
        let negative = self.eat('-');
        match self.peek() {
            Token::Int(value) => {
                self.at += 1;
                Ok(if negative { value.wrapping_neg() } else { value })
            }
            _ => self.expected("an integer"),
        }
    }

    fn small(&mut self) -> Result<u32> {
        let here = self.here();
        let value = self.int()?;
        u32::try_from(value).map_err(|_| PtxProblem {
            line: here.line,
            kind: PtxProblemKind::Number { text: here.text.into() },
        })
    }

    fn unknown_directive<T>(&self) -> Result<T> {
        let here = self.here();
        Err(PtxProblem { line: here.line, kind: PtxProblemKind::Directive { directive: here.text.into() } })
    }

    fn item(&mut self, module: &mut AstModule<'a>) -> Result<()> {
        let mut is_extern = false;
        loop {
            let Token::Word(word) = self.peek() else {
                if self.eat(';') {
                    return Ok(());
                }
                return self.expected("a directive");
            };
            match word {
                ".version" | ".target" | ".address_size" => {
                    let line = self.line();
                    while self.line() == line && self.peek() != Token::End {
                        self.at += 1;
                    }
                    return Ok(());
                }
                ".file" => return self.file(module),
                ".section" => return self.section(),
                ".loc" => {
                    self.loc()?;
                    return Ok(());
                }
                ".visible" | ".weak" | ".common" => self.at += 1,
                ".extern" => {
                    is_extern = true;
                    self.at += 1;
                }
                ".entry" | ".func" => {
                    let function = self.function()?;
                    module.functions.push(function);
                    return Ok(());
                }
                ".global" | ".const" | ".shared" => {
                    let mut var = self.var(is_extern)?;
                    while self.eat(',') {
                        let next = self.declarator(&var)?;
                        module.vars.push(std::mem::replace(&mut var, next));
                    }
                    module.vars.push(var);
                    self.expect(';', "`;`")?;
                    return Ok(());
                }
                ".pragma" => {
                    self.pragma()?;
                    return Ok(());
                }
                _ => return self.unknown_directive(),
            }
        }
    }

    fn pragma(&mut self) -> Result<()> {
        while !matches!(self.peek(), Token::Punct(';') | Token::End) {
            self.at += 1;
        }
        self.expect(';', "`;`")
    }

    fn file(&mut self, module: &mut AstModule<'a>) -> Result<()> {
        self.at += 1;
        let index = self.small()?;
        let Token::Str(name) = self.next() else {
            self.at -= 1;
            return self.expected("a file name");
        };
        while self.eat(',') {
            self.int()?;
        }
        module.files.push((index, name));
        Ok(())
    }

    /// Debug sections carry nothing that execution needs.
    fn section(&mut self) -> Result<()> {
        while !matches!(self.peek(), Token::Punct('{') | Token::End) {
            self.at += 1;
        }
        while !matches!(self.peek(), Token::Punct('}') | Token::End) {
            self.at += 1;
        }
        self.expect('}', "`}`")
    }

    fn loc(&mut self) -> Result<AstStatementKind<'a>> {
        self.at += 1;
        let (file, at, column) = (self.small()?, self.small()?, self.small()?);
        let mut inlined_at = None;
        while self.eat(',') {
            match self.word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    self.word("a label")?;
                    if self.eat('+') {
                        self.int()?;
                    }
                }
                "inlined_at" => inlined_at = Some((self.small()?, self.small()?, self.small()?)),
                _ => {
                    self.at -= 1;
                    return self.expected("`function_name` or `inlined_at`");
                }
            }
        }
        Ok(AstStatementKind::Loc { file, at, column, inlined_at })
    }

    fn space(&mut self) -> Result<Space> {
        let space = match self.peek() {
            Token::Word(".global") => Space::Global,
            Token::Word(".const") => Space::Const,
            Token::Word(".shared") => Space::Shared,
            Token::Word(".local") => Space::Local,
            Token::Word(".param") => Space::Param,
            _ => return self.expected("a state space"),
        };
        self.at += 1;
        Ok(space)
    }

    /// `.space .align n .type name[..] = ..`
    fn var(&mut self, is_extern: bool) -> Result<Var<'a>> {
        let line = self.line();
        let space = self.space()?;
        let (mut align, mut ty, mut vector) = (None, None, 1);
        while let Token::Word(word) = self.peek() {
            match word {
                ".align" => {
                    self.at += 1;
                    align = Some(self.small()?);
                    continue;
                }
                // `.ptr .space .align n` describes what a pointer points to.
                ".ptr" => {
                    self.at += 1;
                    while let Token::Word(".global" | ".const" | ".shared" | ".local" | ".align") =
                        self.peek()
                    {
                        if self.next() == Token::Word(".align") {
                            self.small()?;
                        }
                    }
                    continue;
                }
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                ".attribute" => {
                    self.at += 1;
                    while !self.eat(')') {
                        if self.next() == Token::End {
                            return self.expected("`)`");
                        }
                    }
                    continue;
                }
                _ if word.starts_with('.') => match Ty::parse(&word[1..]) {
                    Some(Ty::Pred) | None => return self.unknown_directive(),
                    Some(known) => ty = Some(known),
                },
                _ => break,
            }
            self.at += 1;
        }
        let Some(ty) = ty else { return self.expected("a type") };
        let natural = (ty.bytes() * vector) as u32;
        let align = align.unwrap_or(natural);
        if !align.is_power_of_two() || align > 1 << 16 {
            return self.expected("an alignment that is a power of two");
        }
        let template =
            Var { name: "", line, space, ty, align, bytes: natural.into(), is_extern, init: Vec::new() };
        self.declarator(&template)
    }

    /// `name[extent].. = {..}`, of the type and space of `like`.
    fn declarator(&mut self, like: &Var<'a>) -> Result<Var<'a>> {
        let line = self.line();
        let name = self.word("a name")?;
        let mut bytes = if like.name.is_empty() { like.bytes } else { like.ty.bytes() as u64 };
        while self.eat('[') {
            let extent = if self.peek() == Token::Punct(']') { 0 } else { self.int()? };
            self.expect(']', "`]`")?;
            bytes = bytes.checked_mul(extent).filter(|&b| b <= MAX_VAR_BYTES).ok_or(PtxProblem {
                line,
                kind: PtxProblemKind::Limit { what: "bytes of a variable", limit: MAX_VAR_BYTES },
            })?;
        }
        let mut init = Vec::new();
        if self.eat('=') {
            let mut depth = 0;
            loop {
                if self.eat('{') {
                    depth += 1;
                } else if self.eat('}') {
                    depth -= 1;
                    self.eat(',');
                } else {
                    init.push(self.init()?);
                    self.eat(',');
                }
                if depth == 0 {
                    break;
                }
            }
        }
        if bytes == 0 {
            bytes = (init.len() * like.ty.bytes()) as u64;
        }
        if (init.len() * like.ty.bytes()) as u64 > bytes {
            return self.expected("at most as many values as the variable has elements");
        }
        Ok(Var { name, line, init, bytes, ..like.clone() })
    }

    fn init(&mut self) -> Result<Init<'a>> {
        let mut name = match self.peek() {
            Token::F32(bits) => {
                self.at += 1;
                return Ok(Init::Bits(bits.into()));
            }
            Token::F64(bits) => {
                self.at += 1;
                return Ok(Init::Bits(bits));
            }
            Token::Word(name) => {
                self.at += 1;
                name
            }
            _ => return Ok(Init::Bits(self.int()?)),
        };
        if name == "generic" && self.eat('(') {
            name = self.word("a variable")?;
            self.expect(')', "`)`")?;
        }
        let offset = self.offset()?;
        Ok(Init::Address(name, offset))
    }

    /// `+ n`, `+ -n`, `- n` or nothing.
    fn offset(&mut self) -> Result<i64> {
        if self.eat('+') || self.peek() == Token::Punct('-') { Ok(self.int()? as i64) } else { Ok(0) }
    }

    fn params(&mut self) -> Result<Vec<Var<'a>>> {
        let mut params = Vec::new();
        if !self.eat('(') {
            return Ok(params);
        }
        while !self.eat(')') {
            if self.peek() == Token::Word(".reg") {
                return self.unknown_directive();
            }
            params.push(self.var(false)?);
            if !self.eat(',') && self.peek() != Token::Punct(')') {
                return self.expected("`,` or `)`");
            }
        }
        Ok(params)
    }

    fn function(&mut self) -> Result<AstFunction<'a>> {
        let line = self.line();
        let entry = self.next() == Token::Word(".entry");
        let returns = if entry { Vec::new() } else { self.params()? };
        let name = self.word("a function name")?;
        let params = self.params()?;
        let mut max_threads = None;
        loop {
            match self.peek() {
                Token::Word(".maxntid" | ".reqntid") => {
                    self.at += 1;
                    let mut threads = self.small()?;
                    while self.eat(',') {
                        threads = threads.saturating_mul(self.small()?);
                    }
                    max_threads = Some(threads);
                }
                Token::Word(".minnctapersm" | ".maxnreg" | ".maxnctapersm" | ".maxclusterrank") => {
                    self.at += 1;
                    self.int()?;
                }
                Token::Word(".noreturn" | ".alias") => self.at += 1,
                Token::Word(".pragma") => self.pragma()?,
                Token::Punct(';') => {
                    self.at += 1;
                    let body = None;
                    return Ok(AstFunction { name, line, entry, returns, params, body, max_threads });
                }
                Token::Punct('{') => break,
                Token::Word(word) if word.starts_with('.') => return self.unknown_directive(),
                _ => return self.expected("`{` or `;`"),
            }
        }
        let body = Some(self.body()?);
        Ok(AstFunction { name, line, entry, returns, params, body, max_threads })
    }

    fn body(&mut self) -> Result<Vec<AstStatement<'a>>> {
        self.expect('{', "`{`")?;
        let mut depth = 1;
        let mut statements = Vec::new();
        while depth > 0 {
            let line = self.line();
            let kind = match self.peek() {
                Token::Punct('{') => {
                    self.at += 1;
                    depth += 1;
                    if depth > MAX_DEPTH {
                        let kind = PtxProblemKind::Limit { what: "nested blocks", limit: MAX_DEPTH as u64 };
                        return Err(PtxProblem { line, kind });
                    }
                    AstStatementKind::Open
                }
                Token::Punct('}') => {
                    self.at += 1;
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                    AstStatementKind::Close
                }
                Token::Punct(';') => {
                    self.at += 1;
                    continue;
                }
                Token::Word(".reg") => {
                    self.registers(&mut statements)?;
                    continue;
                }
                Token::Word(".param" | ".shared" | ".local" | ".global" | ".const") => {
                    let mut var = self.var(false)?;
                    while self.eat(',') {
                        let next = self.declarator(&var)?;
                        let done = std::mem::replace(&mut var, next);
                        statements.push(AstStatement { line, kind: AstStatementKind::Var(done) });
                    }
                    self.expect(';', "`;`")?;
                    AstStatementKind::Var(var)
                }
                Token::Word(".loc") => self.loc()?,
                Token::Word(".pragma") => {
                    self.pragma()?;
                    continue;
                }
                Token::Word(word) if word.starts_with('.') => return self.unknown_directive(),
                Token::Word(name) if self.peek_after() == Token::Punct(':') => {
                    self.at += 2;
                    if self.eat_word(".branchtargets") {
                        let labels = self.names(';')?;
                        AstStatementKind::Targets { name, labels }
                    } else {
                        AstStatementKind::Label(name)
                    }
                }
                Token::Word(_) | Token::Punct('@') => AstStatementKind::Inst(self.instruction()?),
                _ => return self.expected("an instruction"),
            };
            statements.push(AstStatement { line, kind });
        }
        Ok(statements)
    }

    fn registers(&mut self, statements: &mut Vec<AstStatement<'a>>) -> Result<()> {
        let line = self.line();
        self.at += 1;
        let word = self.word("a register type")?;
        let Some(ty) = word.strip_prefix('.').and_then(Ty::parse) else {
            self.at -= 1;
            return self.unknown_directive();
        };
        loop {
            let name = self.word("a register name")?;
            let mut count = None;
            if self.eat('<') {
                count = Some(self.small()?);
                self.expect('>', "`>`")?;
            }
            statements.push(AstStatement { line, kind: AstStatementKind::Reg { ty, name, count } });
            if !self.eat(',') {
                break;
            }
        }
        self.expect(';', "`;`")
    }

    fn names(&mut self, end: char) -> Result<Vec<&'a str>> {
        let mut names = Vec::new();
        while !self.eat(end) {
            names.push(self.word("a name")?);
            if !self.eat(',') && self.peek() != Token::Punct(end) {
                return self.expected("`,` or the end of the list");
            }
        }
        Ok(names)
    }

    fn instruction(&mut self) -> Result<AstInst<'a>> {
        let mut guard = None;
        if self.eat('@') {
            let negated = self.eat('!');
            guard = Some((self.word("a predicate")?, negated));
        }
        let op = self.word("an instruction")?;
        let mut operands = Vec::new();
        while !self.eat(';') {
            let operand = self.operand()?;
            operands.push(operand);
            if !self.eat(',') && self.peek() != Token::Punct(';') {
                return self.expected("`,` or `;`");
            }
        }
        Ok(AstInst { guard, op, operands })
    }

    fn operand(&mut self) -> Result<AstOperand<'a>> {
        if self.eat('{') {
            let mut parts = Vec::new();
            while !self.eat('}') {
                parts.push(self.scalar()?);
                if !self.eat(',') && self.peek() != Token::Punct('}') {
                    return self.expected("`,` or `}`");
                }
            }
            return Ok(AstOperand::Vector(parts));
        }
        if self.eat('(') {
            return Ok(AstOperand::List(self.names(')')?));
        }
        if self.eat('[') {
            let base = match self.peek() {
                Token::Word(name) => {
                    self.at += 1;
                    Some(name)
                }
                _ => None,
            };
            let offset = if base.is_some() { self.offset()? } else { self.int()? as i64 };
            self.expect(']', "`]`")?;
            return Ok(AstOperand::Address(base, offset));
        }
        self.scalar()
    }

    fn scalar(&mut self) -> Result<AstOperand<'a>> {
        if self.eat('!') {
            return Ok(AstOperand::Not(self.word("a predicate")?));
        }
        match self.peek() {
            Token::F32(bits) => {
                self.at += 1;
                Ok(AstOperand::F32(bits))
            }
            Token::F64(bits) => {
                self.at += 1;
                Ok(AstOperand::F64(bits))
            }
            Token::Word(name) => {
                self.at += 1;
                if self.eat('|') {
                    return Ok(AstOperand::Pair(name, self.word("a predicate")?));
                }
                match self.offset()? {
                    0 => Ok(AstOperand::Name(name)),
                    offset => Ok(AstOperand::NamePlus(name, offset)),
                }
            }
            _ => Ok(AstOperand::Int(self.int()?)),
        }
    }
}
