//! The ways in which `perf` finds the callers of a function.

use std::path::Path;

use object::{Object, ObjectSection};

/// The way in which `perf` finds the callers of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// By the frame pointers that the program's functions keep. Cheap, but most distributions'
    /// builds keep none.
    FramePointers,
    /// By unwinding a copy of the stack with the tables that C++ exceptions use, which also
    /// stripped programs have. Each sample takes 8 KB.
    Dwarf,
    /// By the processor's record of recent branches (Intel's LBR). Needs hardware events.
    Lbr,
}

impl CallGraph {
    /// All call graphs, with their names in plans.
    pub const ALL: [(&str, CallGraph); 3] =
        [("fp", CallGraph::FramePointers), ("dwarf", CallGraph::Dwarf), ("lbr", CallGraph::Lbr)];

    /// Returns the name of the call graph in plans.
    pub fn name(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find_map(|(name, graph)| (graph == self).then_some(name))
            .expect("`ALL` has all")
    }

    /// Returns the call graph for a program: by frame pointers if it keeps them, else by unwinding.
    pub fn of_program(path: &Path) -> Self {
        match keeps_frame_pointers(path) {
            Some(true) => Self::FramePointers,
            Some(false) | None => Self::Dwarf,
        }
    }

    /// Returns the value of perf's option `--call-graph`.
    pub(crate) fn perf_option(self) -> &'static str {
        match self {
            Self::FramePointers => "fp",
            // The load's own frames have 6 KB of it. Where the copy ends within them, samples of one
            // function have different outer frames, and no caller has most of a change.
            Self::Dwarf => "dwarf,16384",
            Self::Lbr => "lbr",
        }
    }
}

/// Returns whether most functions of a program begin with setting up a frame pointer. `None` for a
/// file that isn't a program, or a processor whose instructions are unknown here.
fn keeps_frame_pointers(path: &Path) -> Option<bool> {
    // push %rbp; mov %rsp,%rbp
    const PROLOGUE: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];

    let bytes = fs_err::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    match file.architecture() {
        // The ABI requires frame pointers.
        object::Architecture::Aarch64 => return Some(true),
        object::Architecture::X86_64 => {}
        _ => return None,
    }

    let text = file.section_by_name(".text")?.data().ok()?;
    let prologues = text.windows(4).filter(|bytes| *bytes == PROLOGUE).count();

    // A binary search table with a row for each function: 4 bytes of header, the pointer, then the
    // number of rows.
    let table = file.section_by_name(".eh_frame_hdr")?.data().ok()?;
    let functions = u32::from_le_bytes(table.get(8..12)?.try_into().ok()?);
    Some(prologues as f64 > f64::from(functions) / 2.0)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_compiler_option_for_frame_pointers_is_recognized() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("a.c");
        let function = |index: u32| {
            format!(
                "__attribute__((noinline)) int f{index}(int x) {{ volatile int y = x; return y + 1; }}\n"
            )
        };
        let functions: String = (0..50).map(function).collect();
        let calls: String = (0..50).map(|index| format!("+ f{index}(c)")).collect();
        let main = format!("{functions}int main(int c, char **v) {{ return 0 {calls}; }}\n");
        fs_err::write(&source, main).unwrap();
        for (option, expected) in [
            ("-fno-omit-frame-pointer", CallGraph::FramePointers),
            ("-fomit-frame-pointer", CallGraph::Dwarf),
        ] {
            let program = folder.path().join(option);
            let compiled =
                Command::new("cc").args(["-O2", option, "-o"]).args([&program, &source]).status();
            assert!(compiled.unwrap().success());
            assert_eq!(CallGraph::of_program(&program), expected, "{option}");
        }
        assert_eq!(CallGraph::of_program(&source), CallGraph::Dwarf);
    }
}
