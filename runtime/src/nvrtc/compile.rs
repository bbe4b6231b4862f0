//! Compiles CUDA C++ text.

use std::ffi::{CStr, CString, NulError, c_char};
use std::fmt;

use cudarc::nvrtc::{result, sys};

use super::arch::Arch;
use super::error::NvrtcError;
use super::found::Version;
use super::load::{Nvrtc, nvrtc};

/// The form of the code to compile to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// PTX text, for the architecture and later ones, and for virtual GPUs.
    Ptx,
    /// A cubin, for the architecture alone.
    Cubin,
}

/// The target of a compilation.
#[derive(Clone, Copy, Debug)]
pub struct CompileOptions<'a> {
    /// The architecture.
    pub arch: Arch,
    /// The form of the code to compile to.
    pub kind: CodeKind,
    /// The text's name, a file name as a rule: in the log, and in the line table of the image.
    pub name: &'a str,
}

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The code.
    pub code: Code,
    /// The architecture it is for.
    pub arch: Arch,
    /// The options that NVRTC was given.
    pub options: Vec<String>,
    /// The NVRTC that made it.
    pub nvrtc: Version,
    /// NVRTC's log: its warnings, empty as a rule.
    pub warnings: String,
}

/// Compiled code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// PTX text.
    Ptx(String),
    /// A cubin, which is an ELF file.
    Cubin(Vec<u8>),
}

impl Code {
    /// Its bytes, as they are written to a file.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Code::Ptx(text) => text.as_bytes(),
            Code::Cubin(bytes) => bytes,
        }
    }
}

/// A text that is given to NVRTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// The program.
    Source,
    /// The program's name.
    Name,
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Text::Source => "the CUDA text",
            Text::Name => "the program's name",
        })
    }
}

/// A text did not compile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// There is no NVRTC to compile with.
    #[error(transparent)]
    Nvrtc(#[from] NvrtcError),
    /// NVRTC does not compile for the architecture.
    #[error(
        "NVRTC {nvrtc} does not compile for {arch}\nhelp: choose one of {}",
        supported.iter().map(Arch::to_string).collect::<Vec<_>>().join(", ")
    )]
    Arch {
        /// The architecture.
        arch: Arch,
        /// The version of NVRTC.
        nvrtc: Version,
        /// The architectures that it compiles for.
        supported: &'static [Arch],
    },
    /// A text has a zero byte, which would end it for NVRTC.
    #[error("{text} has a zero byte at position {position}, which CUDA C++ does not allow\nhelp: remove it")]
    ZeroByte {
        /// The text that is not a C string.
        text: Text,
        /// The byte's position, from 0.
        position: usize,
    },
    /// The text is not correct CUDA C++.
    #[error("{name} does not compile for {arch}:\n{log}")]
    Rejected {
        /// The program's name.
        name: String,
        /// The architecture.
        arch: Arch,
        /// NVRTC's log; its lines begin with name and line number.
        log: String,
    },
    /// NVRTC failed otherwise.
    #[error("{name}: {call} of NVRTC failed: {code}{}{log}", if log.is_empty() { "" } else { ":\n" })]
    Call {
        /// The program's name.
        name: String,
        /// The function.
        call: &'static str,
        /// Its result.
        code: result::NvrtcError,
        /// NVRTC's log, as far as there is one.
        log: String,
    },
}

/// Compiles CUDA C++ text, which must not need any header. May be called by several threads at a time.
///
/// # Errors
/// [`CompileError::Rejected`] with NVRTC's log where the text is wrong; the others where options or machine are.
pub fn compile(source: &str, options: &CompileOptions<'_>) -> Result<Image, CompileError> {
    Request::new(source, options)?.compile()
}

/// All that an image depends on: two requests with the same content get the same image from the same NVRTC.
pub(super) struct Request<'a> {
    pub(super) options: CompileOptions<'a>,
    pub(super) source: CString,
    name: CString,
    pub(super) nvrtc: &'static Nvrtc,
    pub(super) flags: Vec<String>,
}

impl<'a> Request<'a> {
    /// Refuses what can be refused without compiling.
    pub(super) fn new(source: &str, options: &CompileOptions<'a>) -> Result<Request<'a>, CompileError> {
        let &CompileOptions { arch, kind, name } = options;
        let source = c_string(source, Text::Source)?;
        let c_name = c_string(name, Text::Name)?;
        let nvrtc = nvrtc()?;
        if !nvrtc.archs.contains(&arch) {
            let version = nvrtc.found.version;
            return Err(CompileError::Arch { arch, nvrtc: version, supported: &nvrtc.archs });
        }
        let target = match kind {
            CodeKind::Ptx => arch.compute(),
            CodeKind::Cubin => arch.to_string(),
        };
        let flags = vec![
            format!("--gpu-architecture={target}"),
            "--std=c++17".into(),
            "--generate-line-info".into(),
            "-default-device".into(),
        ];
        Ok(Request { options: *options, source, name: c_name, nvrtc, flags })
    }

    /// The image of code that NVRTC has made for this request.
    pub(super) fn image(&self, code: Code, warnings: String) -> Image {
        let (arch, nvrtc) = (self.options.arch, self.nvrtc.found.version);
        Image { code, arch, options: self.flags.clone(), nvrtc, warnings }
    }

    pub(super) fn compile(&self) -> Result<Image, CompileError> {
        let CompileOptions { arch, kind, name } = self.options;
        let failed = |call, log: &str| {
            let log = log.to_owned();
            move |code| CompileError::Call { name: name.into(), call, code, log }
        };
        let program = result::create_program(&self.source, Some(&self.name));
        let program = Program(program.map_err(failed("nvrtcCreateProgram", ""))?);
        // SAFETY: `program` is alive, and the flags have no zero byte, at which cudarc would panic.
        let compiled = unsafe { result::compile_program(program.0, &self.flags) };
        let log = program.log().map_err(failed("nvrtcGetProgramLog", ""))?;
        match compiled {
            Err(result::NvrtcError(sys::nvrtcResult::NVRTC_ERROR_COMPILATION)) => {
                return Err(CompileError::Rejected { name: name.into(), arch, log });
            }
            compiled => compiled.map_err(failed("nvrtcCompileProgram", &log))?,
        }
        let code = match kind {
            CodeKind::Ptx => Code::Ptx(program.ptx().map_err(failed("nvrtcGetPTX", &log))?),
            CodeKind::Cubin => Code::Cubin(program.cubin().map_err(failed("nvrtcGetCUBIN", &log))?),
        };
        Ok(self.image(code, log))
    }
}

fn c_string(content: &str, text: Text) -> Result<CString, CompileError> {
    let zero = |error: NulError| CompileError::ZeroByte { text, position: error.nul_position() };
    CString::new(content).map_err(zero)
}

/// A program of NVRTC's, destroyed when dropped.
struct Program(sys::nvrtcProgram);

impl Program {
    fn log(&self) -> Result<String, result::NvrtcError> {
        // SAFETY: the program is alive.
        unsafe { result::get_program_log(self.0) }.map(|log| text(&log))
    }

    fn ptx(&self) -> Result<String, result::NvrtcError> {
        // SAFETY: the program is alive.
        unsafe { result::get_ptx(self.0) }.map(|ptx| text(&ptx))
    }

    fn cubin(&self) -> Result<Vec<u8>, result::NvrtcError> {
        let mut size = 0;
        // SAFETY: the program is alive; writes one integer.
        unsafe { sys::nvrtcGetCUBINSize(self.0, &mut size) }.result()?;
        let mut cubin = vec![0; size];
        // SAFETY: the program is alive; writes `size` bytes, which there is room for.
        unsafe { sys::nvrtcGetCUBIN(self.0, cubin.as_mut_ptr().cast::<c_char>()) }.result()?;
        Ok(cubin)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program is alive and not used after this. It can only fail for a program that is not.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

/// A text of NVRTC's, which ends at the first zero byte.
fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|&c| c.cast_unsigned()).collect();
    let bytes = CStr::from_bytes_until_nul(&bytes).map_or(&bytes[..], CStr::to_bytes);
    String::from_utf8_lossy(bytes).trim_end().to_owned() + if bytes.is_empty() { "" } else { "\n" }
}
