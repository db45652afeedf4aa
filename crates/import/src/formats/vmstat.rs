//! Output of `vmstat N`. Columns are found by their names.

use super::reading::{CpuShares, FileContents, FormatReader, HostSample, HostSamples};
use crate::text::{Doubt, Line, Refusal, header_columns, measure, share};

/// The most that shares of processors may add up to, since each is rounded.
const SHARES_MAX: f64 = 104.0;

/// The columns that are read.
struct Columns {
    count: usize,
    switches: usize,
    user: usize,
    system: usize,
    idle: usize,
    iowait: Option<usize>,
    steal: Option<usize>,
}

impl Columns {
    fn of(header: &[&str]) -> Option<Self> {
        let [switches, user, system, idle] = header_columns(header, ["cs", "us", "sy", "id"])?;
        let optional = |name: &str| header.iter().position(|column| *column == name);
        Some(Self {
            count: header.len(),
            switches,
            user,
            system,
            idle,
            iowait: optional("wa"),
            steal: optional("st"),
        })
    }

    /// Returns the shares of CPU time other than idle.
    fn cpu(&self, words: &[&str], line: u64) -> Result<CpuShares, Refusal> {
        Ok(CpuShares {
            user: share(words[self.user], "us", line)?,
            system: share(words[self.system], "sy", line)?,
            iowait: optional_share(words, self.iowait, "wa", line)?,
            steal: optional_share(words, self.steal, "st", line)?,
        })
    }
}

/// Returns the share in a column that some versions lack; 0 without it.
fn optional_share(
    words: &[&str],
    column: Option<usize>,
    what: &str,
    line: u64,
) -> Result<f64, Refusal> {
    match column {
        Some(column) => share(words[column], what, line),
        None => Ok(0.0),
    }
}

/// Reads `vmstat`.
pub(crate) struct VmstatReader {
    /// The first line is the mean since boot, as without `-y`.
    since_boot: bool,
    interval_s: Option<f64>,
    columns: Option<Columns>,
    header_rows: u64,
    host: HostSamples,
    /// The line of the first sample, and its context switches.
    first: Option<u64>,
    doubts: Vec<Doubt>,
    /// A line that is cut off; only the last one may be.
    cut: Option<Refusal>,
}

impl VmstatReader {
    pub fn new(since_boot: Option<bool>, interval_s: Option<f64>) -> Self {
        Self {
            since_boot: since_boot.unwrap_or(true),
            interval_s,
            columns: None,
            header_rows: 0,
            host: HostSamples::default(),
            first: None,
            doubts: Vec::new(),
            cut: None,
        }
    }

    /// Reads a header, which scripts of the author repeat.
    fn header(&mut self, columns: Columns, line: u64) -> Result<(), Refusal> {
        // The author's scripts take each row but the first for a sample of zeros.
        self.host.published.count += u64::from(self.header_rows > 0);
        self.header_rows += 1;

        if let Some(former) = &self.columns {
            let is_same = columns.switches == former.switches
                && columns.user == former.user
                && columns.system == former.system;
            if !is_same {
                return Err(Refusal::at(line, "the columns change within the file"));
            }
        }
        self.columns = Some(columns);
        Ok(())
    }

    fn sample(&mut self, line: &Line<'_>, words: &[&str]) -> Result<(), Refusal> {
        let Some(columns) = &self.columns else {
            return Err(Refusal::at(line.number, "a line of vmstat comes before its header"));
        };

        // The end of the file may cut its last line; `cut` is an error once another line follows.
        if words.len() < columns.count {
            let text = format!("a line of vmstat has {} of {} columns", words.len(), columns.count);
            self.cut = Some(Refusal::at(line.number, text));
            return Ok(());
        }

        let switches = measure(words[columns.switches], "cs", line.number)?;
        let cpu = columns.cpu(words, line.number)?;
        let idle = share(words[columns.idle], "id", line.number)?;

        // What the author publishes includes the mean since boot.
        self.host.published.add_vmstat(switches, cpu.user + cpu.system);
        let is_first = self.first.is_none();
        if is_first {
            self.first = Some(line.number);
        }
        if is_first && self.since_boot {
            return Ok(());
        }

        // Shares in the wrong columns show in their sum.
        let mut sample = HostSample { switches: Some(switches), cpu: Some(cpu), disk: None };
        let sum = cpu.user + cpu.system + cpu.iowait + cpu.steal + idle;
        if sum > SHARES_MAX {
            sample.cpu = None;
            self.doubts.push(Doubt::at(
                "import::swapped",
                line.number,
                format!("shares of processors add up to {sum}%, so they are left out"),
            ));
        }

        self.host.samples.push(sample);
        Ok(())
    }
}

impl FormatReader for VmstatReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        if let Some(cut) = self.cut.take() {
            return Err(cut);
        }

        let words = line.words();
        let Some(first_word) = words.first() else {
            return Ok(());
        };

        // This line names groups of columns; the next one names the columns.
        if first_word.starts_with("procs") {
            return Ok(());
        }
        if let Some(columns) = Columns::of(&words) {
            return self.header(columns, line.number);
        }
        if first_word.starts_with(|letter: char| letter.is_ascii_digit()) {
            return self.sample(line, &words);
        }
        Err(Refusal::at(line.number, format!("`{first_word}` begins no line of vmstat")))
    }

    fn end(mut self: Box<Self>) -> Result<FileContents, Refusal> {
        if self.columns.is_none() {
            return Err(Refusal::of_file("it has no header of vmstat"));
        }
        if let Some(cut) = self.cut.take() {
            let text = format!("{}; it is left out", cut.text);
            self.doubts.push(Doubt { code: "import::truncated", line: cut.line, text });
        }

        if let Some(line) = self.first.filter(|_| self.since_boot) {
            let text = "the first line is the mean since boot, and is left out";
            self.doubts.push(Doubt::at("import::since-boot", line, text));
        }
        if self.header_rows > 1 {
            let text = format!("{} header rows are not samples", self.header_rows);
            self.doubts.push(Doubt::of_file("import::header-rows", text));
        }

        self.host.interval_s = self.interval_s;
        Ok(FileContents { host: Some(self.host), doubts: self.doubts, ..FileContents::default() })
    }
}

impl super::reading::PublishedSamples {
    fn add_vmstat(&mut self, switches: f64, busy: f64) {
        self.count += 1;
        self.switches += switches;
        self.busy += busy;
    }
}
