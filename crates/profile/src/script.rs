//! Reads the output of `perf script`.

use std::io::{self, BufRead};

use words::Stacks;

use crate::symbols::FunctionNames;

/// The fields to ask `perf script` for.
pub const FIELDS: &str = "comm,pid,tid,ip,sym,dso";

/// The kernel's half of the address space begins here, on x86-64 and AArch64.
const KERNEL: u64 = 0xffff_0000_0000_0000;

/// The samples of a step.
#[derive(Debug, Default, PartialEq)]
pub struct Profile {
    /// Stacks by thread name. Frames of the kernel end in `_[k]`, as in other flame graph tools. A
    /// function without a symbol has the name of its file in brackets.
    pub stacks: Stacks,
    /// The number of samples that the kernel dropped because `perf` did not keep up.
    pub lost: u64,
    /// The number of samples whose innermost function has no symbol.
    pub unknown: u64,
}

/// Counts the samples in the output of `perf script`.
///
/// A sample is a line with the thread, and a line for each frame from the innermost outward:
///
/// ```text
/// postgres 28890/28890
///         1bb1c0 heap_insert (/usr/lib/postgresql/17/bin/postgres)
///          27249 __libc_start_call_main (/usr/lib/x86_64-linux-gnu/libc.so.6)
/// ```
pub fn read(mut script: impl BufRead) -> io::Result<Profile> {
    let mut profile = Profile::default();
    let mut names = FunctionNames::default();

    // The current sample: its thread, and its frames so far.
    let mut thread: Option<String> = None;
    let mut frames: Vec<String> = Vec::new();

    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let is_over = script.read_until(b'\n', &mut bytes)? == 0;
        let line = String::from_utf8_lossy(&bytes);
        let text = line.trim_end();
        if is_over || text.is_empty() {
            if let Some(thread) = thread.take() {
                profile.add(&thread, &frames);
                frames.clear();
            }
            if is_over {
                return Ok(profile);
            }
        } else if text.starts_with(char::is_whitespace) && thread.is_some() {
            frames.extend(frame_name(text.trim_start(), &mut names));
        } else if let Some((_, lost)) = text.split_once("PERF_RECORD_LOST") {
            let count = lost.rsplit(' ').next().and_then(|count| count.parse().ok());
            profile.lost += count.unwrap_or(0u64);
        } else {
            thread = Some(thread_name(text));
        }
    }
}

impl Profile {
    /// Counts a sample of a thread, whose frames are listed from the innermost outward.
    fn add(&mut self, thread: &str, frames: &[String]) {
        // Brackets stand for a function without a symbol; see `frame_name`.
        let has_symbol = frames.first().is_some_and(|innermost| !innermost.starts_with('['));
        self.unknown += u64::from(!has_symbol);

        let from_outermost = frames.iter().rev().map(String::as_str);
        self.stacks.add([thread].into_iter().chain(from_outermost), 1);
    }
}

/// Returns the thread's name, without the process and thread IDs that follow it.
fn thread_name(header: &str) -> String {
    let trimmed = header.trim();
    let name = trimmed.rsplit_once(' ').map_or(trimmed, |(name, _ids)| name);
    name.trim().to_owned()
}

/// Returns the name of the function in the line of a frame, such as
/// `1bb1c0 heap_insert (/usr/lib/postgresql/17/bin/postgres)`.
fn frame_name(text: &str, names: &mut FunctionNames) -> Option<String> {
    let (address_text, rest) = text.split_once(' ')?;
    let address = u64::from_str_radix(address_text, 16).ok()?;
    let symbol_and_file = rest.strip_suffix(" (deleted))").unwrap_or(rest);
    let (symbol, file) = symbol_and_file.rsplit_once(" (")?;

    let name = if symbol == "[unknown]" {
        let path = file.trim_end_matches(')');
        let file_name = path.rsplit('/').next().unwrap_or(path);
        format!("[{}]", file_name.trim_matches(['[', ']']))
    } else {
        names.of(symbol).to_owned()
    };
    Some(if address >= KERNEL { format!("{name}_[k]") } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_by_thread_and_stack() {
        let script = "\
postgres 28890/28890 
\t          1bb1c0 heap_insert.part.0 (/usr/lib/postgresql/17/bin/postgres)
\t           ff2dc [unknown] (/usr/lib/postgresql/17/bin/postgres)
\t           27249 __libc_start_call_main (/usr/lib/x86_64-linux-gnu/libc.so.6)

bg writer 1 28890/28891 
\tffffffff816ae78c __check_object_size ([kernel.kallsyms])
\tffffffffc16ae78c [unknown] ([ext4])
\t          1bb1c0 operator()(int) const (/tmp/a b (deleted))

postgres 28890/28890 PERF_RECORD_LOST lost 17
postgres 28890/28890 
\t           ff2dc [unknown] (/usr/lib/postgresql/17/bin/postgres)
";
        let samples = read(script.as_bytes()).unwrap();
        assert_eq!(
            samples.stacks.to_string(),
            "postgres;__libc_start_call_main;[postgres];heap_insert 1\n\
             postgres;[postgres] 1\n\
             bg writer 1;operator()(int) const;[ext4]_[k];__check_object_size_[k] 1\n"
        );
        assert_eq!((samples.lost, samples.unknown), (17, 1));
    }

    #[test]
    fn text_that_is_cut_off_loses_no_sample_before_it() {
        let script = "a 1/1 \n\t 10 f (/a)\n\nb 1/1 \n\t 10 g (/";
        let samples = read(script.as_bytes()).unwrap();
        assert_eq!(samples.stacks.to_string(), "a;f 1\nb;g 1\n");
        assert_eq!(read(&b""[..]).unwrap(), Profile::default());
    }
}
