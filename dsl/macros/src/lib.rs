//! The collective attribute: a shim over quadrille-dsl.
