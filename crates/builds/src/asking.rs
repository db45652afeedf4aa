//! Asks programs of builds and compilers what they are. A build comes from elsewhere: its programs
//! get little time, what they print is limited, and nothing that they start outlives the question.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::process_group::ProcessGroup;
use crate::unprivileged::unprivileged;
use crate::waiting::{now, wait};

/// The time in which a program has to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time in which the rest of an answer comes after the program has ended. A process that it left
/// behind in a group of its own may hold the pipe forever, and on a busy machine the thread that
/// reads it may wait for a processor.
const REST_TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes of each pipe that are read.
const BYTES_MAX: u64 = 64 << 10;

/// The output of a program. Each text is cut after 64 KiB.
#[derive(Debug)]
pub struct Answer {
    pub stdout: String,
    pub stderr: String,
    /// The program did not end in time, and was killed.
    pub is_late: bool,
}

/// Runs a program that prints what it is, as `nobody` if this process runs as root.
///
/// # Errors
/// The program does not start.
pub fn ask(command: &mut Command) -> anyhow::Result<Answer> {
    let group = ProcessGroup::begin()?;
    let mut child =
        group.add(unprivileged(command)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pipes = [pieces(child.stdout.take()), pieces(child.stderr.take())];

    let began = now();
    let is_late = !wait(&child, &|| began.elapsed() > TIMEOUT)?;

    // Also what it started, and a program that stopped only because nobody reads more, or that left
    // the group.
    group.kill();
    let _ = child.kill();
    child.wait()?;

    let [stdout, stderr] = pipes.map(|pieces| all_of(&pieces));
    Ok(Answer { stdout, stderr, is_late })
}

/// Returns the first line of what a compiler prints as its version. A recipe may need no compiler.
pub fn version_of(command: &str) -> String {
    // The variable may have a prefix and options: `ccache gcc -m64`.
    let shell = format!("{command} --version");
    let answer = ask(Command::new("sh").args(["-c", &shell]));
    let printed = answer.map(|answer| answer.stdout).unwrap_or_default();

    let line = printed.lines().next().map(str::to_owned);
    line.unwrap_or_else(|| "not found".to_owned())
}

/// Reads a pipe in a thread, up to the limit.
fn pieces(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, pieces) = channel();
    std::thread::spawn(move || {
        let mut limited = pipe.map(|pipe| pipe.take(BYTES_MAX));
        let mut buffer = vec![0; 4096];
        while let Some(Ok(count)) = limited.as_mut().map(|pipe| pipe.read(&mut buffer)) {
            let is_wanted = count > 0 && sender.send(buffer[..count].to_vec()).is_ok();
            if !is_wanted {
                return;
            }
        }
    });
    pieces
}

/// Returns the text of a pipe whose program has ended.
fn all_of(pieces: &Receiver<Vec<u8>>) -> String {
    let mut bytes = Vec::new();
    while let Ok(piece) = pieces.recv_timeout(REST_TIMEOUT) {
        bytes.extend(piece);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(script: &str) -> Answer {
        ask(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn what_a_program_prints_is_returned() {
        let answer = answer("echo 17.2; echo why >&2");
        assert_eq!((&*answer.stdout, &*answer.stderr), ("17.2\n", "why\n"));
        assert!(!answer.is_late);
    }

    #[test]
    fn a_program_that_prints_without_end_fills_no_memory() {
        let answer = answer("yes 17.2");
        assert_eq!(answer.stdout.len() as u64, BYTES_MAX);
    }

    #[test]
    fn a_process_that_holds_the_pipe_is_killed_or_not_waited_for() {
        for script in ["sleep 1000 & echo 17.2", "setsid sleep 20 & echo 17.2"] {
            let answer = answer(script);
            assert_eq!(answer.stdout, "17.2\n", "{script}");
        }
    }

    #[test]
    fn a_program_that_leaves_its_group_is_killed() {
        assert!(answer("exec setsid sleep 1000").is_late);
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        assert!(answer("echo 17.2; sleep 1000").is_late);
    }
}
