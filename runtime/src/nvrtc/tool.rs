//! Runs a program of the machine within a time limit and keeps what it said.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Lines of a failed program's standard error that an error message repeats.
const TAIL_LINES: usize = 12;

/// The time between two looks at a running program.
const POLL: Duration = Duration::from_millis(5);

/// The longest wait for the output of a program that has ended: a child of its own may still hold the pipe.
const DRAIN: Duration = Duration::from_secs(2);

/// Why a program of the machine did not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The program is not installed, or not on `PATH`.
    #[error("`{program}` is not on PATH")]
    NotInstalled {
        /// The program's name.
        program: String,
    },
    /// The program is there, but the system could not start it.
    #[error("`{command}` could not be started: {error}")]
    Start {
        /// The command line.
        command: String,
        /// The system's error.
        error: io::Error,
    },
    /// The program ran longer than it may and was ended.
    #[error("`{command}` did not end within {} s{}", limit.as_secs_f32(), said(stderr))]
    TimedOut {
        /// The command line.
        command: String,
        /// The time limit.
        limit: Duration,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// The program ended with a failure.
    #[error("`{command}` failed ({status}){}", said(stderr))]
    Failed {
        /// The command line.
        command: String,
        /// The exit status or signal, in words.
        status: String,
        /// The last lines of its standard error.
        stderr: String,
    },
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(":\n    {}", stderr.replace('\n', "\n    ")) }
}

/// Runs `program args` without standard input and returns its standard output.
pub(super) fn run(program: &OsStr, args: &[&OsStr], limit: Duration) -> Result<Vec<u8>, ToolError> {
    let command = command_line(program, args);
    let start = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            ToolError::NotInstalled { program: program.to_string_lossy().into_owned() }
        }
        _ => ToolError::Start { command: command.clone(), error },
    };
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start)?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < limit => thread::sleep(POLL),
            Ok(None) => {
                // It may have ended by itself meanwhile: either way it is gone and reaped after this.
                let _ = child.kill();
                let _ = child.wait();
                return Err(ToolError::TimedOut { command, limit, stderr: tail(&collect(&stderr)) });
            }
            Err(error) => return Err(ToolError::Start { command, error }),
        }
    };
    let stdout = collect(&stdout);
    if status.success() {
        Ok(stdout)
    } else {
        Err(ToolError::Failed { command, status: status.to_string(), stderr: tail(&collect(&stderr)) })
    }
}

/// The command as a user would type it; words with characters that a shell takes are quoted.
pub(super) fn command_line(program: &OsStr, args: &[&OsStr]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:".contains(c);
    let word = |word: &OsStr| {
        let word = word.to_string_lossy();
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    std::iter::once(program).chain(args.iter().copied()).map(word).collect::<Vec<_>>().join(" ")
}

/// Reads a pipe on a thread of its own, so that a full pipe cannot stop the program.
fn drain<R: Read + Send + 'static>(pipe: Option<R>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let mut block = [0; 4096];
        // A pipe that breaks is as good as one that ends; a receiver that has gone no longer needs it.
        while let Ok(n @ 1..) = pipe.read(&mut block) {
            if sender.send(block[..n].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

fn collect(pipe: &Receiver<Vec<u8>>) -> Vec<u8> {
    let until = Instant::now() + DRAIN;
    let mut all = Vec::new();
    while let Ok(block) = pipe.recv_timeout(until.saturating_duration_since(Instant::now())) {
        all.extend(block);
    }
    all
}

fn tail(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> Result<Vec<u8>, ToolError> {
        run("sh".as_ref(), &["-c".as_ref(), script.as_ref()], limit)
    }

    const AMPLE: Duration = Duration::from_secs(60);

    #[test]
    fn output_larger_than_a_pipe_arrives_whole() {
        let out = sh("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2", AMPLE).unwrap();
        assert_eq!(out.len(), 300_000);
    }

    #[test]
    fn failure_repeats_the_command_and_the_end_of_its_stderr() {
        let error = sh("for i in $(seq 40); do echo line $i >&2; done; exit 7", AMPLE).unwrap_err();
        let ToolError::Failed { status, stderr, .. } = &error else { panic!("{error:?}") };
        assert_eq!(status, "exit status: 7");
        assert_eq!(stderr.lines().count(), TAIL_LINES);
        assert!(stderr.starts_with("line 29\n") && stderr.ends_with("\nline 40"), "{stderr}");
        assert!(error.to_string().starts_with("`sh -c 'for i in $(seq 40);"), "{error}");
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let began = Instant::now();
        let error = sh("echo waiting >&2; exec sleep 600", Duration::from_millis(300)).unwrap_err();
        assert!(matches!(&error, ToolError::TimedOut { stderr, .. } if stderr == "waiting"), "{error:?}");
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run("no-such-python3".as_ref(), &[], AMPLE).unwrap_err();
        assert_eq!(error.to_string(), "`no-such-python3` is not on PATH");
    }
}
