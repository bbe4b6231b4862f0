//! Runs a kernel of a PTX file:
//!
//! ```text
//! cargo run -p quadrille-vgpu --example run_ptx -- file.ptx                      lists the kernels
//! cargo run -p quadrille-vgpu --example run_ptx -- file.ptx vector_add --grid 8 --block 128 \
//!     --arg buffer:f32:1000:iota --arg buffer:f32:1000:2.5 --arg buffer:f32:1000:none --arg s32:1000
//! ```
//!
//! One `--arg` for each parameter of the kernel, in order: `TYPE:VALUE`, or `buffer:TYPE:COUNT:CONTENT` with CONTENT a
//! number, `iota` (0, 1, 2, ..) or `none` (reading it before it is written is a fault). Types: u8 s8 u16 s16 u32 s32 u64
//! s64 f32 f64. Buffers are printed after the run.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use quadrille_vgpu::{Config, Launch, Machine, PtxModule};

const USAGE: &str = "usage: run_ptx FILE [KERNEL] [--grid X[,Y[,Z]]] [--block X[,Y[,Z]]] [--shared BYTES]\n\
                     \x20              [--seed N] [--limit INSTRUCTIONS] [--arg TYPE:VALUE | --arg buffer:TYPE:COUNT:CONTENT]..";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// A buffer to be printed.
struct Shown {
    number: usize,
    ty: String,
    address: u64,
    count: usize,
    written: bool,
}

/// Does what the arguments ask and returns what is to be printed.
///
/// # Errors
/// What is wrong with the arguments, the PTX or the run, for people.
pub(crate) fn run(args: &[String]) -> Result<String, String> {
    let mut positional = Vec::new();
    let mut arguments = Vec::new();
    let (mut grid, mut block, mut shared_bytes) = ([1; 3], [32, 1, 1], 0);
    let mut config = Config { instruction_limit: Some(1 << 32), ..Config::default() };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
        match arg.as_str() {
            "--grid" => grid = extents(value()?)?,
            "--block" => block = extents(value()?)?,
            "--shared" => shared_bytes = number(value()?)?,
            "--seed" => config.seed = number(value()?)?,
            "--limit" => config.instruction_limit = Some(number(value()?)?),
            "--arg" => arguments.push(value()?.clone()),
            _ if arg.starts_with('-') => return Err(format!("unknown option {arg}\n{USAGE}")),
            _ => positional.push(arg.as_str()),
        }
    }
    let (file, kernel) = match positional[..] {
        [file] => (file, None),
        [file, kernel] => (file, Some(kernel)),
        _ => return Err(USAGE.into()),
    };
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let module = Arc::new(PtxModule::parse(&text).map_err(|e| format!("{file}:\n{e}"))?);
    let Some(kernel) = kernel else {
        return Ok(module.kernels().fold(String::new(), |mut out, name| {
            let sizes = module.parameters(name).unwrap_or_default();
            let _ = writeln!(out, "{name}: parameters of {sizes:?} bytes");
            out
        }));
    };
    let mut machine = Machine::new(config).map_err(|e| e.to_string())?;
    let mut shown = Vec::new();
    let mut params = Vec::new();
    for (i, argument) in arguments.iter().enumerate() {
        params.push(parameter(&mut machine, i, argument, &mut shown)?);
    }
    let launch = Launch { rank: 0, module, kernel: kernel.into(), grid, block, shared_bytes, params };
    machine.launch(launch).map_err(|e| e.to_string())?;
    let outcome = machine.run().map_err(|fault| fault.to_string())?;
    let mut out = String::new();
    for buffer in &shown {
        show(&machine, buffer, &mut out);
    }
    let _ = writeln!(
        out,
        "{} instructions of warps, {} of threads",
        outcome.statistics.instructions, outcome.statistics.lane_instructions
    );
    Ok(out)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number that fits"))
}

fn extents(text: &str) -> Result<[u32; 3], String> {
    let mut extents = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("`{text}` has more than three extents"));
    }
    for (extent, part) in extents.iter_mut().zip(parts) {
        *extent = number(part)?;
    }
    Ok(extents)
}

/// The bytes of one value.
fn encode(ty: &str, text: &str) -> Result<Vec<u8>, String> {
    Ok(match ty {
        "u8" => number::<u8>(text)?.to_le_bytes().to_vec(),
        "s8" => number::<i8>(text)?.to_le_bytes().to_vec(),
        "u16" => number::<u16>(text)?.to_le_bytes().to_vec(),
        "s16" => number::<i16>(text)?.to_le_bytes().to_vec(),
        "u32" => number::<u32>(text)?.to_le_bytes().to_vec(),
        "s32" => number::<i32>(text)?.to_le_bytes().to_vec(),
        "u64" => number::<u64>(text)?.to_le_bytes().to_vec(),
        "s64" => number::<i64>(text)?.to_le_bytes().to_vec(),
        "f32" => number::<f32>(text)?.to_le_bytes().to_vec(),
        "f64" => number::<f64>(text)?.to_le_bytes().to_vec(),
        _ => return Err(format!("`{ty}` is none of u8 s8 u16 s16 u32 s32 u64 s64 f32 f64")),
    })
}

fn decode(ty: &str, bytes: &[u8]) -> String {
    let mut raw = [0; 8];
    raw[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(raw);
    match ty {
        "s8" => (bits as i8).to_string(),
        "s16" => (bits as i16).to_string(),
        "s32" => (bits as i32).to_string(),
        "s64" => (bits as i64).to_string(),
        "f32" => f32::from_bits(bits as u32).to_string(),
        "f64" => f64::from_bits(bits).to_string(),
        _ => bits.to_string(),
    }
}

fn parameter(
    machine: &mut Machine,
    index: usize,
    text: &str,
    shown: &mut Vec<Shown>,
) -> Result<Vec<u8>, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (ty, count, content) = match parts[..] {
        ["buffer", ty, count, content] => (ty, number::<usize>(count)?, content),
        [ty, value] if ty != "buffer" => return encode(ty, value),
        _ => return Err(format!("`--arg {text}` is neither TYPE:VALUE nor buffer:TYPE:COUNT:CONTENT")),
    };
    let size = encode(ty, "0")?.len();
    let bytes = (count as u64).checked_mul(size as u64).ok_or("a buffer is too large")?;
    let label = format!("argument {index}");
    let address = machine.alloc(0, bytes, 256, &label).map_err(|e| e.to_string())?;
    if content != "none" {
        let mut data = Vec::new();
        for i in 0..count {
            data.extend(match content {
                // Small types count modulo 100, so that every type can hold it.
                "iota" if size == 1 => encode(ty, &(i % 100).to_string())?,
                "iota" => encode(ty, &(i % 30_000).to_string())?,
                value => encode(ty, value)?,
            });
        }
        machine.write(address, &data).map_err(|e| e.to_string())?;
    }
    let written = content != "none";
    shown.push(Shown { number: index, ty: ty.into(), address, count, written });
    Ok(address.to_le_bytes().to_vec())
}

fn show(machine: &Machine, buffer: &Shown, out: &mut String) {
    const MOST: usize = 64;
    let size = encode(&buffer.ty, "0").map_or(1, |bytes| bytes.len());
    let _ = write!(out, "argument {} ({}):", buffer.number, buffer.ty);
    for i in 0..buffer.count.min(MOST) {
        match machine.read(buffer.address + (i * size) as u64, size) {
            Ok(bytes) => {
                let _ = write!(out, " {}", decode(&buffer.ty, &bytes));
            }
            // Never written: nothing to show.
            Err(_) if !buffer.written => out.push_str(" _"),
            Err(fault) => {
                let _ = write!(out, " ({fault})");
            }
        }
    }
    if buffer.count > MOST {
        let _ = write!(out, " .. {} more", buffer.count - MOST);
    }
    out.push('\n');
}
