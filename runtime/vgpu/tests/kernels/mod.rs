//! Kernels compiled by NVRTC give what the same computation gives on the CPU, from PTX of two of its code generators.

mod sm80_and_sm90 {
    use crate::common::{BASICS, MESSAGES, PACKED};
    include!("suite.rs");
}

mod sm100 {
    const BASICS: &str = include_str!("../ptx/basics_sm100.ptx");
    const MESSAGES: &str = include_str!("../ptx/messages_sm100.ptx");
    const PACKED: &str = include_str!("../ptx/packed_sm100.ptx");
    include!("suite.rs");
}
