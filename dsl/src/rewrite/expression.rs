//! Expressions.

use super::reads::reads;
use super::{Rewriter, api, span_of};
use crate::syntax::{Op, binary_op};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quadrille_compiler::evaluate::arithmetic::Binary;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Expr, Lit, Member, UnOp};

/// A variable or value, and the way to a part of it.
struct Part<'a> {
    root: &'a Expr,
    /// From the root on.
    steps: Vec<Step<'a>>,
}

enum Step<'a> {
    Field(&'a Member),
    Index(&'a Expr),
}

impl Rewriter<'_> {
    /// The value of an expression.
    pub(super) fn expr(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Paren(paren) => self.expr(&paren.expr),
            Expr::Group(group) => self.expr(&group.expr),
            Expr::Lit(lit) => literal(&lit.lit),
            Expr::Path(_) => self.name(expr),
            Expr::Unary(unary) => self.unary(unary),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Cast(cast) => {
                let (value, span) = (self.expr(&cast.expr), span_of(expr));
                let to = Ident::new(&cast.ty.to_token_stream().to_string().to_uppercase(), span);
                let (tape, types, site) = (self.tape(span), api("IntType", span), self.site(expr));
                let reads = self.reads(&[&cast.expr]);
                quote_spanned!(span=> #tape.cast(#value, #types::#to, #site, #reads)?)
            }
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method(call),
            Expr::Field(_) | Expr::Index(_) => self.part(expr),
            Expr::Tuple(tuple) => {
                let items: Vec<_> = tuple.elems.iter().map(|item| self.expr(item)).collect();
                quote!((#(#items,)*))
            }
            Expr::Array(array) => {
                let items: Vec<_> = array.elems.iter().map(|item| self.expr(item)).collect();
                quote!([#(#items),*])
            }
            Expr::Repeat(repeat) => {
                let (item, len) = (self.expr(&repeat.expr), self.len(&repeat.len));
                quote!([#item; #len])
            }
            Expr::If(branch) => self.branch(branch),
            Expr::Block(block) => self.block(&block.block),
            // The parser lets nothing else through.
            other => other.to_token_stream(),
        }
    }

    /// A variable, or a name of the language.
    pub(super) fn name(&self, name: &Expr) -> TokenStream {
        let getter = match name {
            Expr::Path(path) => path.path.get_ident().and_then(getter),
            _ => None,
        };
        let Some(getter) = getter else { return name.to_token_stream() };
        let span = span_of(name);
        let (tape, getter) = (self.tape(span), Ident::new(getter, span));
        quote_spanned!(span=> #tape.#getter())
    }

    /// The values that expressions read, with their names.
    pub(super) fn reads(&self, exprs: &[&Expr]) -> TokenStream {
        let pairs = reads(exprs).into_iter().map(|name| {
            let text = name.to_string();
            let value = self.name(&syn::parse_quote!(#name));
            quote!((#text, &#value))
        });
        quote!(&[#(#pairs),*])
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> TokenStream {
        let span = span_of(unary);
        if let (UnOp::Neg(_), Expr::Lit(lit)) = (&unary.op, &*unary.expr)
            && let Lit::Int(_) = &lit.lit
        {
            let number = literal(&lit.lit);
            return quote_spanned!(span=> -#number);
        }
        let operand = self.expr(&unary.expr);
        if let UnOp::Not(_) = unary.op {
            return quote_spanned!(span=> (!#operand));
        }
        self.checked_unary("Neg", operand, unary, &unary.expr)
    }

    fn checked_unary(
        &mut self,
        op: &str,
        operand: TokenStream,
        whole: impl ToTokens + Copy,
        reads: &Expr,
    ) -> TokenStream {
        let span = span_of(whole);
        let (tape, ops, op) = (self.tape(span), api("Unary", span), Ident::new(op, span));
        let (site, reads) = (self.site(whole), self.reads(&[reads]));
        quote_spanned!(span=> #tape.unary(#ops::#op, #operand, #site, #reads)?)
    }

    fn binary(&mut self, binary: &syn::ExprBinary) -> TokenStream {
        let Some((op, _)) = binary_op(&binary.op) else { return binary.to_token_stream() };
        let (left, right) = (self.expr(&binary.left), self.expr(&binary.right));
        match op {
            Op::Binary(
                op @ (Binary::Add
                | Binary::Sub
                | Binary::Mul
                | Binary::Div
                | Binary::Rem
                | Binary::Shl
                | Binary::Shr),
            ) => self.checked_binary(op, [left, right], binary, [&binary.left, &binary.right]),
            // Whatever has a value for all operands is Rust's own.
            _ => {
                let op = &binary.op;
                quote!((#left #op #right))
            }
        }
    }

    fn checked_binary(
        &mut self,
        op: Binary,
        [left, right]: [TokenStream; 2],
        whole: impl ToTokens + Copy,
        reads: [&Expr; 2],
    ) -> TokenStream {
        let span = span_of(whole);
        let (tape, op) = (self.tape(span), operator(op, span));
        let (site, reads) = (self.site(whole), self.reads(&reads));
        quote_spanned!(span=> #tape.binary(#op, #left, #right, #site, #reads)?)
    }

    fn method(&mut self, call: &syn::ExprMethodCall) -> TokenStream {
        let receiver = self.expr(&call.receiver);
        let Some(argument) = call.args.first() else {
            let op = match call.method.to_string().as_str() {
                "abs" => "Abs",
                "ilog2" => "Ilog2",
                _ => {
                    let span = span_of(call);
                    let function = api("is_power_of_two", span);
                    return quote_spanned!(span=> #function(#receiver));
                }
            };
            return self.checked_unary(op, receiver, call, &call.receiver);
        };
        let operands = [receiver, self.expr(argument)];
        let op = match call.method.to_string().as_str() {
            "pow" => Binary::Pow,
            "div_ceil" => Binary::DivCeil,
            "rem_euclid" => Binary::RemEuclid,
            name => {
                let (function, [left, right]) = (Ident::new(name, span_of(&call.method)), operands);
                return quote!(::core::cmp::Ord::#function(#left, #right));
            }
        };
        self.checked_binary(op, operands, call, [&call.receiver, argument])
    }

    /// The arguments have their values before the fn is entered, behind the hidden first one.
    fn call(&mut self, call: &syn::ExprCall) -> TokenStream {
        let span = span_of(call);
        let (function, site) = (&call.func, self.site(call));
        let name = crate::syntax::text(function);
        let arguments: Vec<_> = call.args.iter().map(|argument| self.fitted(argument)).collect();
        let names: Vec<_> = (0..arguments.len()).map(|i| format_ident!("argument{i}", span = span)).collect();
        let tape = self.tape(span);
        quote_spanned! {span=>
            {
                #tape.call(#name)?;
                #(let #names = #arguments;)*
                #tape.enter(#site);
                let value = #function(#tape, #(#names),*)?;
                #tape.leave();
                value
            }
        }
    }

    fn branch(&mut self, branch: &syn::ExprIf) -> TokenStream {
        let (condition, then) = (self.expr(&branch.cond), self.block(&branch.then_branch));
        let otherwise = branch.else_branch.as_ref().map(|(_, otherwise)| {
            let otherwise = match &**otherwise {
                Expr::Block(block) => self.block(&block.block),
                // Its condition is evaluated in a place of its own.
                other => {
                    let inner = self.value(other, None);
                    quote!({ #inner })
                }
            };
            quote!(else #otherwise)
        });
        quote!(if #condition #then #otherwise)
    }

    /// `base.0` or `base[i]` as a value.
    fn part(&mut self, expr: &Expr) -> TokenStream {
        let span = span_of(expr);
        let (lets, part) = self.place(expr);
        if lets.is_empty() { part } else { quote_spanned!(span=> { #lets #part }) }
    }

    /// A part of a variable or value: statements that make its root and its indices known, and then the part.
    pub(super) fn place(&mut self, expr: &Expr) -> (TokenStream, TokenStream) {
        let Part { root, steps } = Part::of(expr);
        let span = span_of(expr);
        let (mut lets, mut part) = (TokenStream::new(), self.expr(root));
        if !matches!(root, Expr::Path(_)) {
            let base = Ident::new("base", span);
            lets = quote_spanned!(span=> let #base = #part;);
            part = base.to_token_stream();
        }
        for (i, step) in steps.into_iter().enumerate() {
            match step {
                Step::Field(member) => part = quote!(#part.#member),
                Step::Index(index) => {
                    let (value, length, tape) = (self.expr(index), api("length", span), self.tape(span));
                    let name = format_ident!("index{i}", span = span);
                    lets.extend(quote_spanned! {span=>
                        let #name = #value;
                        let #name = #tape.index(#length(&#part), #name)?;
                    });
                    part = quote!(#part[#name]);
                }
            }
        }
        (lets, part)
    }
}

impl<'a> Part<'a> {
    fn of(expr: &'a Expr) -> Part<'a> {
        match expr {
            Expr::Paren(paren) => Part::of(&paren.expr),
            Expr::Group(group) => Part::of(&group.expr),
            Expr::Field(field) => Part::of(&field.base).then(Step::Field(&field.member)),
            Expr::Index(indexed) => Part::of(&indexed.expr).then(Step::Index(&indexed.index)),
            root => Part { root, steps: Vec::new() },
        }
    }

    fn then(mut self, step: Step<'a>) -> Part<'a> {
        self.steps.push(step);
        self
    }
}

/// What yields a name of the language that no variable can have.
fn getter(name: &Ident) -> Option<&'static str> {
    let getters = [("RANKS", "ranks"), ("ROOT", "root"), ("NODES", "nodes"), ("LOCAL_RANKS", "local_ranks")];
    getters.into_iter().find(|(known, _)| name == known).map(|(_, getter)| getter)
}

/// A number as an `i64`, or a bool.
fn literal(literal: &Lit) -> TokenStream {
    match literal {
        Lit::Int(number) => {
            let mut suffixed = Literal::i64_suffixed(number.base10_parse().unwrap_or_default());
            // The lowest number has one digit more than fits without its sign.
            if let Ok(parsed) = format!("{}i64", number.base10_digits()).parse::<Literal>() {
                suffixed = parsed;
            }
            suffixed.set_span(number.span());
            suffixed.to_token_stream()
        }
        other => other.to_token_stream(),
    }
}

/// An operator of the interface.
pub(super) fn operator(op: Binary, span: Span) -> TokenStream {
    let (ops, op) = (api("Binary", span), Ident::new(&format!("{op:?}"), span));
    quote_spanned!(span=> #ops::#op)
}
