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

    fn sample(&mut self, line: &Line<'_>, words: &[&str]) -> Result<(), Refusal> {
        let Some(columns) = &self.columns else {
            return Err(Refusal::at(line.number, "a line of vmstat comes before its header"));
        };
        if words.len() < columns.count {
            let text = format!("a line of vmstat has {} of {} columns", words.len(), columns.count);
            self.cut = Some(Refusal::at(line.number, text));
            return Ok(());
        }

        let value = |column: usize, what: &str| share(words[column], what, line.number);
        let optional = |column: Option<usize>, what: &str| match column {
            Some(column) => value(column, what),
            None => Ok(0.0),
        };
        let switches = measure(words[columns.switches], "cs", line.number)?;
        let cpu = CpuShares {
            user: value(columns.user, "us")?,
            system: value(columns.system, "sy")?,
            iowait: optional(columns.iowait, "wa")?,
            steal: optional(columns.steal, "st")?,
        };
        let idle = value(columns.idle, "id")?;

        self.host.published.add_vmstat(switches, cpu.user + cpu.system);
        let is_first = self.first.is_none();
        if is_first {
            self.first = Some(line.number);
        }
        if is_first && self.since_boot {
            return Ok(());
        }

        let sum = cpu.user + cpu.system + cpu.iowait + cpu.steal + idle;
        let is_share = sum <= SHARES_MAX;
        if !is_share {
            self.doubts.push(Doubt::at(
                "import::swapped",
                line.number,
                format!("shares of processors add up to {sum}%, so they are left out"),
            ));
        }
        let cpu = is_share.then_some(cpu);
        self.host.samples.push(HostSample { switches: Some(switches), cpu, disk: None });
        Ok(())
    }
}

impl FormatReader for VmstatReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        if let Some(cut) = self.cut.take() {
            return Err(cut);
        }

        let words = line.words();
        let is_number = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
        if words.first().is_some_and(|word| word.starts_with("procs")) {
            return Ok(());
        }

        if let Some(columns) = Columns::of(&words) {
            // The author's scripts take each row but the first for a sample of zeros.
            self.host.published.count += u64::from(self.header_rows > 0);
            self.header_rows += 1;
            let names = |columns: &Columns| [columns.switches, columns.user, columns.system];
            let is_same = self.columns.as_ref().is_none_or(|old| names(old) == names(&columns));
            if !is_same {
                return Err(Refusal::at(line.number, "the columns change within the file"));
            }
            self.columns = Some(columns);
            return Ok(());
        }

        match words.first() {
            Some(first) if is_number(first) => self.sample(line, &words),
            None => Ok(()),
            Some(first) => {
                let text = format!("`{first}` begins no line of vmstat");
                Err(Refusal::at(line.number, text))
            }
        }
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
