//! The parser: the accepted subset of Rust, from syn's tree to a [`quadrille_compiler::body::Body`].
//!
//! Names are resolved and types checked here, once.

mod attribute;
mod collective;
mod expression;
mod lift;
mod loops;
mod macros;
mod movement;
mod names;
mod numbers;
mod options;
mod outside;
mod parser;
mod pattern;
mod schedule;
mod statement;
mod together;

pub(crate) use attribute::SCHEDULE_ATTRIBUTES;
pub(crate) use collective::{ParsedCollective, parse};
pub(crate) use expression::{array_len, assigning_op};
pub(crate) use lift::lift;
pub(crate) use loops::ranged;
pub(crate) use macros::{Fragment, MACROS, fragments, macro_arguments};
pub(crate) use movement::unwrapped;
pub(crate) use options::size;
pub(crate) use statement::buffer_root;

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::diagnose::Places;
    use crate::item::take_options;
    use quadrille_compiler::body::Body;
    use std::path::{Path, PathBuf};
    use syn::Item;

    fn files(folder: &Path, list: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => files(&path, list),
                false if path.extension().is_some_and(|extension| extension == "rs") => list.push(path),
                false => {}
            }
        }
    }

    #[test]
    fn bodies_are_the_same_after_they_were_bytes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (mut list, mut bodies) = (Vec::new(), 0);
        for folder in ["examples", "tests/programs", "tests/reject"] {
            files(&root.join(folder), &mut list);
        }
        for path in list {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let Ok(file) = syn::parse_file(&text) else { continue };
            for item in file.items {
                let Item::Fn(mut item) = item else { continue };
                let Some(options) = take_options(&mut item) else { continue };
                let Ok(body) = parse(options, item, &[], Places::default()).body else { continue };
                let bytes = body.to_bytes().expect("bytes");
                assert_eq!(Body::from_bytes(&bytes).expect("a body"), body, "{}", path.display());
                bodies += 1;
            }
        }
        assert!(bodies > 80, "{bodies}");
    }
}
