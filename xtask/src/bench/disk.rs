//! Compares the floor of a disk with what fio measures.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::measure::{in_turn, median};
use super::{Setup, need};
use crate::workspace::shown;

/// The time of one run of one rate.
const MILLISECONDS: u32 = 250;

/// The size of the file that is read: Assay writes it for each run, which must not tire the disk.
const FILE_MIB: u32 = 128;

/// The largest relative difference between the medians of both programs.
const APART_MAX: f64 = 0.05;

/// The name of the file that fio reads.
const FIO_FILE: &str = "fio";

/// One rate, as both programs measure it.
struct Case {
    mode: &'static str,
    request: Request,
}

enum Request {
    Read { depth: u32, bytes: u32 },
    Sync { place: &'static str },
}

/// Runs Assay and fio in turn on the disk of the folder of builds. Returns false if their medians are
/// too far apart, and the ratios of the rounds show it.
pub fn run(setup: &Setup) -> Result<bool> {
    need("fio")?;
    let program = setup.build("probe", "--example disk_floor")?.join("examples/disk_floor");
    // The folder for temporary files may be in memory.
    let folder = tempfile::tempdir_in(setup.workspace.target_directory()?)?;
    write_file(&folder.path().join(FIO_FILE))?;

    let mut passed = true;
    for case in cases().iter().filter(|case| case.name().contains(&setup.only)) {
        let ours = || case.ours(&program, folder.path());
        let fio = || case.fio(folder.path());
        // One round that is not counted brings both programs into memory.
        in_turn(1, ours, fio)?;
        let (ours, fio): (Vec<f64>, Vec<f64>) =
            in_turn(setup.many_round_count, ours, fio)?.into_iter().unzip();

        let ratio = median(&ours) / median(&fio);
        let ratios: Vec<f64> = ours.iter().zip(&fio).map(|(ours, fio)| ours / fio).collect();
        let (low, high) = interval_of_median(&ratios);
        let verdict = if (ratio - 1.0).abs() <= APART_MAX {
            "ok"
        } else if low <= 1.0 + APART_MAX && high >= 1.0 - APART_MAX {
            "noisy"
        } else {
            "FAILED"
        };
        passed &= verdict != "FAILED";
        println!(
            "{verdict:<6} {:<32} assay {:>6.0}/s, fio {:>6.0}/s, ratio of medians {ratio:.3}, \
             of a round {low:.3} to {high:.3} (95%) in {} rounds",
            case.name(),
            median(&ours),
            median(&fio),
            ours.len()
        );
    }
    Ok(passed)
}

/// Returns a 95% interval for the median, which assumes nothing about the distribution: of the
/// sorted values, those at 0.98 times the square root of their number from the middle.
fn interval_of_median(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let low = (count / 2.0 - 0.98 * count.sqrt()).floor().max(0.0) as usize;
    (sorted[low], sorted[sorted.len() - 1 - low])
}

/// Writes the file that fio reads, with contents that no layer below compresses.
fn write_file(path: &Path) -> Result<()> {
    let mut file = fs_err::File::create(path)?;
    let random = fs_err::File::open("/dev/urandom")?;
    std::io::copy(&mut random.take(u64::from(FILE_MIB) << 20), &mut file)?;
    Ok(file.sync_all()?)
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (mode, depth, bytes) in
        [("direct", 1, 4096), ("direct", 4, 16_384), ("buffered", 1, 4096), ("buffered", 4, 4096)]
    {
        cases.push(Case { mode, request: Request::Read { depth, bytes } });
    }
    for place in ["append", "overwrite"] {
        for mode in ["direct", "buffered"] {
            cases.push(Case { mode, request: Request::Sync { place } });
        }
    }
    cases
}

impl Case {
    fn name(&self) -> String {
        match self.request {
            Request::Read { depth, bytes } => {
                format!("read {bytes} B, depth {depth}, {}", self.mode)
            }
            Request::Sync { place } => format!("{place} + fdatasync, {}", self.mode),
        }
    }

    /// Returns the rate that Assay measures.
    fn ours(&self, program: &Path, folder: &Path) -> Result<f64> {
        let mut command = Command::new(program);
        command.arg(folder).arg(MILLISECONDS.to_string()).arg(self.mode);
        match self.request {
            Request::Read { depth, bytes } => {
                command.arg("read").args([depth, bytes].map(|number| number.to_string()))
            }
            Request::Sync { place } => command.args(["sync", place]),
        };
        let text = stdout(&mut command)?;
        let rate = text.trim().strip_prefix("per_s:").context("the example printed no rate")?;
        Ok(rate.trim().parse()?)
    }

    /// Returns the rate that fio measures. It would empty the page cache within the measured time, so
    /// `dd` does that before.
    fn fio(&self, folder: &Path) -> Result<f64> {
        let file = match self.request {
            Request::Read { .. } => folder.join(FIO_FILE),
            Request::Sync { .. } => folder.join("synced"),
        };
        if file.exists() {
            let input = format!("if={}", file.display());
            stdout(Command::new("dd").args([&input, "iflag=nocache", "count=0"]))?;
        }

        let mut command = Command::new("fio");
        command
            .args(["--name=floor", "--ioengine=psync", "--thread", "--group_reporting"])
            .args(["--time_based", "--randrepeat=0", "--invalidate=0", "--output-format=json"])
            .arg(format!("--filename={}", file.display()))
            .arg(format!("--runtime={MILLISECONDS}ms"))
            .arg(format!("--direct={}", u8::from(self.mode == "direct")));
        let kind = match self.request {
            Request::Read { depth, bytes } => {
                // Each thread has a part of the file, so that none reads what another one has read.
                let part = FILE_MIB / depth;
                command
                    .args(["--rw=randread".to_owned(), format!("--bs={bytes}")])
                    .args([format!("--numjobs={depth}"), format!("--size={part}M")])
                    .arg(format!("--offset_increment={part}M"));
                "read"
            }
            Request::Sync { place } => {
                command.args(["--rw=write", "--bs=4k", "--fdatasync=1", "--unlink=1"]);
                let (size, overwrite) = if place == "append" { (FILE_MIB, 0) } else { (4, 1) };
                command.args([format!("--size={size}M"), format!("--overwrite={overwrite}")]);
                "write"
            }
        };

        let text = stdout(&mut command)?;
        let json = text.find('{').map(|start| &text[start..]).context("fio printed no JSON")?;
        let report: serde_json::Value = serde_json::from_str(json)?;
        let rate = report.pointer(&format!("/jobs/0/{kind}/iops"));
        rate.and_then(serde_json::Value::as_f64).context("fio reported no rate")
    }
}

/// Runs a program, and returns what it prints.
fn stdout(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("`{}` cannot run", shown(command)))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}` failed: {errors}", shown(command));
    Ok(String::from_utf8(output.stdout)?)
}
