//! The writer of the text: lines at levels of indentation.

use std::fmt;

/// Text that grows by `write!` and `writeln!`; each line begins at the current level.
#[derive(Default)]
pub(super) struct CodeWriter {
    text: String,
    level: usize,
    lines: u32,
}

impl CodeWriter {
    /// Serves `write!` and `writeln!`. Returns nothing, since writing to a `String` cannot fail.
    pub(super) fn write_fmt(&mut self, arguments: fmt::Arguments<'_>) {
        let _ = fmt::write(self, arguments);
    }

    /// Writes `content` in braces, a level deeper, after `head`.
    pub(super) fn block(&mut self, head: &str, content: impl FnOnce(&mut CodeWriter)) {
        self.begin(head);
        content(self);
        self.end();
    }

    /// Opens a brace after `head`; the lines up to [`CodeWriter::end`] are a level deeper.
    pub(super) fn begin(&mut self, head: &str) {
        let space = if head.is_empty() { "" } else { " " };
        writeln!(self, "{head}{space}{{");
        self.level += 1;
    }

    /// Closes the brace that was opened last.
    pub(super) fn end(&mut self) {
        self.level = self.level.saturating_sub(1);
        writeln!(self, "}}");
    }

    /// Returns the number of whole lines so far.
    pub(super) fn lines(&self) -> u32 {
        self.lines
    }

    /// Returns the text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Ends the writing.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl fmt::Write for CodeWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.split_inclusive('\n') {
            if piece != "\n" && (self.text.is_empty() || self.text.ends_with('\n')) {
                self.text.extend(std::iter::repeat_n("  ", self.level));
            }
            self.text.push_str(piece);
            self.lines += u32::from(piece.ends_with('\n'));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::CodeWriter;

    #[test]
    fn lines_begin_at_their_level() {
        let mut code = CodeWriter::default();
        code.block("if (a)", |code| {
            code.block("", |code| writeln!(code, "f({},\n  b);\n", 1));
            write!(code, "g(");
            writeln!(code, ");");
        });
        assert_eq!(code.text(), "if (a) {\n  {\n    f(1,\n      b);\n\n  }\n  g();\n}\n");
        assert_eq!(code.lines(), 8);
    }
}
