//! Names that users write, and the enums that are tables of names.

/// Defines an enum by a table with one row a variant: its doc comment, `Variant = "name"`, and, where the enum has
/// further columns, `=> Row { .. }`. From the rows follow `ALL`, `name`, `row` and `Display`.
macro_rules! table {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident {
            $($(#[$doc:meta])* $Variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $Enum {
            $($(#[$doc])* $Variant,)+
        }

        impl $Enum {
            /// Every variant, in the order in which texts list them.
            pub const ALL: [$Enum; [$($name),+].len()] = [$($Enum::$Variant),+];

            /// The name that users write and texts show.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Enum::$Variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident: $Row:ident {
            $($(#[$doc:meta])* $Variant:ident = $name:literal => $row:expr,)+
        }
    ) => {
        $crate::names::table! {
            $(#[$meta])*
            pub enum $Enum {
                $($(#[$doc])* $Variant = $name,)+
            }
        }

        impl $Enum {
            const fn row(self) -> $Row {
                match self {
                    $($Enum::$Variant => $row,)+
                }
            }
        }
    };
}
pub(crate) use table;

/// A name that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no {what}; {}", if known.is_empty() { "there is none here".to_owned() } else { format!("use one of {known}") })]
pub struct UnknownName {
    /// The name given.
    pub given: String,
    /// The thing that it should be the name of.
    pub what: &'static str,
    /// The known names, separated by commas; empty if there are none.
    pub known: String,
}

/// Finds the one of `all` that has the name `given`.
pub(crate) fn find<T: Copy>(
    given: &str,
    what: &'static str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    all.iter().copied().find(|&t| name(t) == given).ok_or_else(|| UnknownName {
        given: given.to_owned(),
        what,
        known: all.iter().map(|&t| name(t)).collect::<Vec<_>>().join(", "),
    })
}
