//! Output of `iostat -x`, of sysstat 9 to 12. Columns are found by their names.

use std::collections::BTreeMap;

use super::reading::{
    CpuShares, DiskRates, Facts, FileContents, FormatReader, HostSample, HostSamples,
    PublishedSamples,
};
use crate::text::{Doubt, Line, Refusal, measure, share};

/// The most devices that are kept until it is known which one has the database.
const DEVICES_MAX: usize = 64;

/// The share of later reports whose rates must be whole for a first report with others to be the
/// mean since boot.
const WHOLE_SHARE_MIN: f64 = 0.9;

/// The factor by which the size of a sector in KiB counts.
const SECTOR_KB: f64 = 0.5;

/// The columns of devices.
struct Columns {
    names: Vec<String>,
}

impl Columns {
    fn of(header: &[&str]) -> Self {
        Self { names: header.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// Returns the value of the first column with one of these names, times its unit.
    fn value(
        &self,
        words: &[&str],
        names: &[(&str, f64)],
        line: u64,
    ) -> Result<Option<f64>, Refusal> {
        for (name, unit) in names {
            if let Some(column) = self.names.iter().position(|known| known == name) {
                let Some(word) = words.get(column) else {
                    return Ok(None);
                };
                return Ok(Some(measure(&word.replace(',', "."), name, line)? * unit));
            }
        }
        Ok(None)
    }

    /// Returns the value like [`Self::value`], of a column that every version has.
    fn required_value(
        &self,
        words: &[&str],
        names: &[(&str, f64)],
        line: u64,
    ) -> Result<f64, Refusal> {
        let value = self.value(words, names, line)?;
        value.ok_or_else(|| Refusal::at(line, format!("no column `{}`", names[0].0)))
    }

    /// Returns the rates of a device.
    fn rates(&self, words: &[&str], line: u64) -> Result<DiskRates, Refusal> {
        Ok(DiskRates {
            reads: self.required_value(words, &[("r/s", 1.0)], line)?,
            read_kb: self.required_value(words, &READ_KB, line)?,
            writes: self.required_value(words, &[("w/s", 1.0)], line)?,
            written_kb: self.required_value(words, &WRITTEN_KB, line)?,
            read_ms: self.value(words, &[("r_await", 1.0), ("await", 1.0)], line)?,
            write_ms: self.value(words, &[("w_await", 1.0), ("await", 1.0)], line)?,
            queue: self.value(words, &[("aqu-sz", 1.0), ("avgqu-sz", 1.0)], line)?,
            busy: self.value(words, &[("%util", 1.0)], line)?,
        })
    }
}

const READ_KB: [(&str, f64); 3] = [("rkB/s", 1.0), ("rMB/s", 1024.0), ("rsec/s", SECTOR_KB)];
const WRITTEN_KB: [(&str, f64); 3] = [("wkB/s", 1.0), ("wMB/s", 1024.0), ("wsec/s", SECTOR_KB)];

/// The part of the output that lines belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Between,
    Processors,
    Devices,
}

/// Reads `iostat`.
pub(crate) struct IostatReader {
    device: Option<String>,
    since_boot: Option<bool>,
    interval_s: Option<f64>,
    part: Part,
    columns: Option<Columns>,
    /// The number of reports, each of which begins with shares of processors.
    reports: usize,
    cpu: Vec<Option<CpuShares>>,
    /// The rates of each report, by device.
    devices: BTreeMap<String, Vec<Option<DiskRates>>>,
    facts: Facts,
    doubts: Vec<Doubt>,
    cut: Option<Refusal>,
    last_line: u64,
}

impl IostatReader {
    pub fn new(device: Option<String>, since_boot: Option<bool>, interval_s: Option<f64>) -> Self {
        Self {
            device,
            since_boot,
            interval_s,
            part: Part::Between,
            columns: None,
            reports: 0,
            cpu: Vec::new(),
            devices: BTreeMap::new(),
            facts: Facts::default(),
            doubts: Vec::new(),
            cut: None,
            last_line: 0,
        }
    }

    /// Reads `Linux 5.15.0 (host) 03/17/2025 _x86_64_ (96 CPU)`.
    fn banner(&mut self, line: &Line<'_>) {
        let words = line.words();
        self.facts.date = words.iter().find_map(|word| date_of(word));
        let cpus = line.text.rsplit_once('(').and_then(|(_, last)| last.split(' ').next());
        self.facts.sampled_cpus = cpus.and_then(|cpus| cpus.parse().ok());
    }

    fn processors(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let words = line.words();
        let number = line.number;
        if words.len() < 6 {
            return Err(Refusal::at(number, "a line of processors has too few columns"));
        }

        let value = |column: usize, what| share(&words[column].replace(',', "."), what, number);
        let cpu = CpuShares {
            user: value(0, "%user")? + value(1, "%nice")?,
            system: value(2, "%system")?,
            iowait: value(3, "%iowait")?,
            steal: value(4, "%steal")?,
        };
        if let Some(last) = self.cpu.last_mut() {
            *last = Some(cpu);
        }
        self.part = Part::Between;
        Ok(())
    }

    fn device(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        let words = line.words();
        let (Some(columns), Some(first_word)) = (&self.columns, words.first()) else {
            return Ok(());
        };

        // Lines of other devices are left out.
        let name = first_word.trim_end_matches(':');
        if self.device.as_deref().is_some_and(|device| device != name) {
            return Ok(());
        }

        // The end of the file may cut its last line; `cut` is an error once another line follows.
        if words.len() < columns.names.len() {
            let text = format!("a device has {} of {} columns", words.len(), columns.names.len());
            self.cut = Some(Refusal::at(line.number, text));
            return Ok(());
        }

        let rates = columns.rates(&words, line.number)?;
        self.add_rates(name, rates, line.number)
    }

    /// Adds the rates of a device to the current report.
    fn add_rates(&mut self, name: &str, rates: DiskRates, line: u64) -> Result<(), Refusal> {
        if !self.devices.contains_key(name) && self.devices.len() >= DEVICES_MAX {
            return Err(Refusal::at(line, format!("more than {DEVICES_MAX} devices")));
        }

        // A device that was absent from earlier reports has gaps there.
        let reports = self.reports.max(1);
        let of_device = self.devices.entry(name.to_owned()).or_default();
        if of_device.len() >= reports {
            return Err(Refusal::at(line, format!("`{name}` appears twice in a report")));
        }

        of_device.resize(reports - 1, None);
        of_device.push(Some(rates));
        Ok(())
    }

    /// Returns the name of the device with the database, as far as it is known.
    fn chosen(&mut self) -> Option<String> {
        if let Some(device) = self.device.clone() {
            if self.devices.contains_key(&device) {
                return Some(device);
            }

            let text = format!("it has no device `{device}`, so there are no figures of disks");
            self.doubts.push(Doubt::of_file("import::device", text));
            return None;
        }

        // A database that is measured uses its device, and often no other one is used.
        let mut used_devices: Vec<&str> = Vec::new();
        for (name, reports) in &self.devices {
            let mut rates = reports.iter().flatten();
            if rates.any(|report| report.reads + report.writes > 0.0) {
                used_devices.push(name);
            }
        }
        if let [device] = used_devices[..] {
            return Some(device.to_owned());
        }

        let text = format!(
            "no `device` is named, and several were used, so there are no figures of disks: {}",
            used_devices.join(", ")
        );
        self.doubts.push(Doubt::of_file("import::device", text));
        None
    }

    /// Returns whether the first report is the mean since boot.
    fn begins_since_boot(&self, rates: &[Option<DiskRates>]) -> bool {
        if let Some(since_boot) = self.since_boot {
            return since_boot;
        }

        // Requests in an interval are whole; their mean since boot is not.
        let interval_s = self.interval_s.unwrap_or(1.0);
        let Some(Some(first)) = rates.first() else {
            return false;
        };
        if has_whole_requests(first, interval_s) {
            return false;
        }

        // If those of later reports are not whole either, this says nothing about the first one.
        let later: Vec<&DiskRates> = rates.iter().skip(1).flatten().collect();
        let whole_count =
            later.iter().filter(|rates| has_whole_requests(rates, interval_s)).count();
        !later.is_empty() && whole_count as f64 >= WHOLE_SHARE_MIN * later.len() as f64
    }

    fn samples(&mut self) -> HostSamples {
        let device = self.chosen();
        let rates = device.and_then(|device| self.devices.remove(&device)).unwrap_or_default();

        // What the author publishes includes the first report.
        let mut published = PublishedSamples::default();
        for of_report in rates.iter().flatten() {
            published.count += 1;
            published.reads += of_report.reads;
            published.read_kb += of_report.read_kb;
            published.writes += of_report.writes;
            published.written_kb += of_report.written_kb;
        }

        let mut samples = Vec::new();
        for index in 0..self.reports.max(rates.len()) {
            samples.push(HostSample {
                switches: None,
                cpu: self.cpu.get(index).copied().flatten(),
                disk: rates.get(index).copied().flatten(),
            });
        }

        if self.begins_since_boot(&rates) && !samples.is_empty() {
            samples.remove(0);
            let text = "the first report is the mean since boot, and is left out";
            self.doubts.push(Doubt::of_file("import::since-boot", text));
        }

        HostSamples { interval_s: self.interval_s, samples, published }
    }
}

/// Returns whether both numbers of requests in an interval are whole, but for the rounding of their
/// rates to two decimals.
fn has_whole_requests(rates: &DiskRates, interval_s: f64) -> bool {
    [rates.reads, rates.writes].iter().all(|rate| {
        let requests = rate * interval_s;
        (requests - requests.round()).abs() < 0.021
    })
}

/// Returns a date of `iostat` as `2025-03-17`; it writes `03/17/2025`, `03/17/25` or the former.
fn date_of(word: &str) -> Option<String> {
    if !word.chars().all(|letter| letter.is_ascii_digit() || "/-".contains(letter)) {
        return None;
    }

    if let [year, month, day] = word.split('-').collect::<Vec<_>>()[..] {
        return (year.len() == 4).then(|| format!("{year}-{month:0>2}-{day:0>2}"));
    }

    let [month, day, year] = word.split('/').collect::<Vec<_>>()[..] else {
        return None;
    };
    let year = if year.len() == 2 { format!("20{year}") } else { year.to_owned() };
    (year.len() == 4).then(|| format!("{year}-{month:0>2}-{day:0>2}"))
}

impl FormatReader for IostatReader {
    fn line(&mut self, line: &Line<'_>) -> Result<(), Refusal> {
        if let Some(cut) = self.cut.take() {
            return Err(cut);
        }
        self.last_line = line.number;

        let text = line.text.trim_start();
        if text.starts_with("Linux ") {
            self.banner(line);
        } else if text.starts_with("avg-cpu:") {
            self.reports += 1;
            self.cpu.push(None);
            self.part = Part::Processors;
        } else if text.starts_with("Device") {
            self.columns = Some(Columns::of(&line.words()));
            self.part = Part::Devices;
        } else if text.is_empty() {
            self.part = Part::Between;
        } else if self.part == Part::Processors {
            self.processors(line)?;
        } else if self.part == Part::Devices {
            self.device(line)?;
        } else if text.starts_with('{') {
            return Err(Refusal::at(line.number, "JSON of iostat is not read; use its text"));
        } else if date_of(text.split(' ').next().unwrap_or("")).is_none() {
            let first: String = text.chars().take(40).collect();
            return Err(Refusal::at(line.number, format!("`{first}` is not a line of iostat")));
        }
        Ok(())
    }

    fn end(mut self: Box<Self>) -> Result<FileContents, Refusal> {
        if self.columns.is_none() && self.reports == 0 {
            return Err(Refusal::of_file("it has no report of iostat"));
        }
        if let Some(cut) = self.cut.take() {
            let text = format!("{}; it is left out", cut.text);
            self.doubts.push(Doubt { code: "import::truncated", line: cut.line, text });
        }

        let host = self.samples();
        Ok(FileContents {
            facts: self.facts,
            host: Some(host),
            doubts: self.doubts,
            ..FileContents::default()
        })
    }
}
