//! Patterns of `let`, and written types.

use super::expression::array_len;
use super::parser::{BodyParser, Typed, text};
use quadrille_compiler::body::arithmetic::IntType;
use quadrille_compiler::body::{BodyFn, StmtBlock, Type};
use syn::{FnArg, Pat, ReturnType};

impl BodyParser {
    /// Binds the names of `pattern` to a value of type `ty` in the slots from `slot`.
    pub(super) fn pattern(&mut self, pattern: &Pat, ty: &Type, slot: u32) {
        match pattern {
            Pat::Wild(_) => {}
            Pat::Paren(paren) => self.pattern(&paren.pat, ty, slot),
            Pat::Ident(ident) if ident.by_ref.is_some() => {
                self.outside(pattern, "`ref`", "there are only values: leave it out");
            }
            Pat::Ident(ident) if ident.subpat.is_some() => {
                self.outside(pattern, "`@`", "bind the parts by a second `let`");
            }
            Pat::Ident(ident) => self.bind(&ident.ident, ty.clone(), slot, ident.mutability.is_some()),
            Pat::Tuple(tuple) => {
                let unknown;
                let items = match ty {
                    Type::Tuple(items) if items.len() == tuple.elems.len() => items,
                    _ => {
                        if *ty != Type::Unknown {
                            let message = format!(
                                "a pattern of {} parts cannot take a value of type `{ty}`",
                                tuple.elems.len()
                            );
                            self.syntax(pattern, message);
                        }
                        unknown = vec![Type::Unknown; tuple.elems.len()];
                        &unknown
                    }
                };
                let mut at = slot;
                for (part, ty) in tuple.elems.iter().zip(items) {
                    self.pattern(part, ty, at);
                    at += ty.size();
                }
            }
            _ => self.no_pattern(pattern),
        }
    }

    /// A written type.
    pub(super) fn ty(&mut self, ty: &syn::Type) -> Type {
        match ty {
            syn::Type::Paren(paren) => self.ty(&paren.elem),
            syn::Type::Group(group) => self.ty(&group.elem),
            syn::Type::Infer(_) => {
                self.outside(ty, "`_` as a type", "write the type, or leave it out");
                Type::Unknown
            }
            syn::Type::Tuple(tuple) => {
                self.few_parts(tuple.elems.len(), tuple);
                Type::Tuple(tuple.elems.iter().map(|item| self.ty(item)).collect())
            }
            syn::Type::Array(array) => {
                let item = self.ty(&array.elem);
                match array_len(&array.len) {
                    Some(len) => Type::Array(Box::new(item), len),
                    None => {
                        self.syntax(&array.len, "the length of an array is a literal number, at least 1");
                        Type::Unknown
                    }
                }
            }
            syn::Type::Path(_) => match text(ty).as_str() {
                "bool" => Type::Bool,
                name => match IntType::named(name) {
                    Some(known) => Type::Int(known),
                    None => {
                        self.no_type(ty);
                        Type::Unknown
                    }
                },
            },
            _ => {
                self.no_type(ty);
                Type::Unknown
            }
        }
    }

    /// Makes a nested fn known, with an empty body.
    pub(super) fn declare(&mut self, item: &syn::ItemFn) {
        self.stray_attributes(&item.attrs);
        self.plain_fn(&item.sig);
        let mut parameters = Vec::new();
        for input in &item.sig.inputs {
            parameters.push(match input {
                FnArg::Typed(input) => self.ty(&input.ty),
                FnArg::Receiver(receiver) => {
                    self.outside(receiver, "`self`", "write a parameter with a name and a type");
                    Type::Unknown
                }
            });
        }
        let result = match &item.sig.output {
            ReturnType::Default => Type::unit(),
            ReturnType::Type(_, ty) => self.ty(ty),
        };
        let name = item.sig.ident.to_string();
        if name == "reduce" {
            self.syntax(&item.sig.ident, "`reduce` is a name of the language; no fn can have it")
                .help("choose another name");
        }
        self.function_scope.push((name.clone(), self.functions.len() as u32));
        let block = StmtBlock::default();
        self.functions.push(BodyFn { name, parameters, result, frame: 0, block });
    }

    /// Reads the body of a nested fn, declared as number `function`.
    pub(super) fn define(&mut self, item: &syn::ItemFn, function: u32) {
        let declared = &self.functions[function as usize];
        let (name, result) = (declared.name.clone(), declared.result.clone());
        let parameters = declared.parameters.clone();
        let body = self.body(&name, result.clone(), |parser| {
            // Slots of all parameters first: that is where a call puts them.
            let mut slots = Vec::new();
            for (input, ty) in item.sig.inputs.iter().zip(&parameters) {
                slots.push(parser.slots(ty.size(), input));
            }
            for ((input, ty), slot) in item.sig.inputs.iter().zip(&parameters).zip(slots) {
                if let FnArg::Typed(input) = input {
                    parser.pattern(&input.pat, ty, slot);
                }
            }
            let (mut block, ty) = parser.block(&item.block);
            let what = "the value of this fn";
            match block.value.take() {
                Some((loc, expr)) => {
                    let value = parser.fit(&result, Typed { expr, ty }, loc, what);
                    block.value = Some((loc, value));
                }
                None if !result.agrees(&ty) => {
                    let place = match item.block.stmts.last() {
                        Some(last) => parser.places.of(last),
                        None => parser.places.of(&item.sig.ident),
                    };
                    parser.wanted(&result, &ty, place, what);
                }
                None => {}
            }
            block
        });
        self.functions[function as usize] = BodyFn { parameters, ..body };
    }
}
