//! Formulas as the examples' comments have them: `2 (N - 1) / N`, `2 ceil(log2 N)`, `1 + min(NODES - 1, 2) / N`.
//!
//! Factors stand side by side or with `/` between them, and are taken from left to right; a function takes what follows
//! it, or what follows it in parentheses.

use std::iter::Peekable;
use std::vec::IntoIter;

/// The value of a formula, with the names' values given.
pub(crate) fn value(text: &str, names: &dyn Fn(&str) -> Option<f64>) -> Result<f64, String> {
    let mut formula = Formula { tokens: tokens(text).into_iter().peekable(), names };
    let value = formula.sum()?;
    match formula.tokens.next() {
        None => Ok(value),
        Some(token) => Err(format!("`{token}` is left over in `{text}`")),
    }
}

/// Words, numbers, and signs.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_word = false;
    for c in text.chars() {
        let word = c.is_alphanumeric() || c == '_';
        match tokens.last_mut() {
            Some(last) if word && in_word => last.push(c),
            _ if c.is_whitespace() => {}
            _ => tokens.push(c.to_string()),
        }
        in_word = word;
    }
    tokens
}

struct Formula<'a> {
    tokens: Peekable<IntoIter<String>>,
    names: &'a dyn Fn(&str) -> Option<f64>,
}

impl Formula<'_> {
    fn next_is(&mut self, sign: &str) -> bool {
        self.tokens.next_if(|token| token == sign).is_some()
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut sum = self.product()?;
        loop {
            if self.next_is("+") {
                sum += self.product()?;
            } else if self.next_is("-") {
                sum -= self.product()?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut product = self.factor()?;
        loop {
            if self.next_is("/") {
                product /= self.factor()?;
            } else if self.tokens.peek().is_some_and(|token| !["+", "-", ")", ","].contains(&&token[..])) {
                product *= self.factor()?;
            } else {
                return Ok(product);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, String> {
        let token = self.tokens.next().ok_or("the formula ends too early")?;
        if let Ok(number) = token.parse::<f64>() {
            return Ok(number);
        }
        if let Some(value) = (self.names)(&token) {
            return Ok(value);
        }
        match &token[..] {
            "(" => Ok(self.arguments()?.swap_remove(0)),
            "min" if self.next_is("(") => Ok(self.arguments()?.into_iter().fold(f64::INFINITY, f64::min)),
            "ceil" => Ok(self.factor()?.ceil()),
            "floor" => Ok(self.factor()?.floor()),
            "log2" => Ok(self.factor()?.log2()),
            // The ones in the binary numbers below.
            "ones" => Ok(f64::from((0..self.factor()? as u32).map(u32::count_ones).sum::<u32>())),
            _ => Err(format!("`{token}` is nothing that a formula has")),
        }
    }

    /// Up to the closing parenthesis; one at least.
    fn arguments(&mut self) -> Result<Vec<f64>, String> {
        let mut arguments = vec![self.sum()?];
        while self.next_is(",") {
            arguments.push(self.sum()?);
        }
        if self.next_is(")") { Ok(arguments) } else { Err("a parenthesis is not closed".to_owned()) }
    }
}
