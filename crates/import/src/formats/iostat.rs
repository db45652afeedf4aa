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
        let (Some(columns), Some(name)) = (&self.columns, words.first()) else {
            return Ok(());
        };

        // Lines of other devices are left out, and so are lines that the end of the file cut.
        let name = name.trim_end_matches(':');
        if self.device.as_deref().is_some_and(|device| device != name) {
            return Ok(());
        }
        if words.len() < columns.names.len() {
            let text = format!("a device has {} of {} columns", words.len(), columns.names.len());
            self.cut = Some(Refusal::at(line.number, text));
            return Ok(());
        }

        let value = |names: &[(&str, f64)]| columns.value(&words, names, line.number);
        let needed = |names: &[(&str, f64)]| {
            let missing = || Refusal::at(line.number, format!("no column `{}`", names[0].0));
            value(names)?.ok_or_else(missing)
        };
        let rates = DiskRates {
            reads: needed(&[("r/s", 1.0)])?,
            read_kb: needed(&READ_KB)?,
            writes: needed(&[("w/s", 1.0)])?,
            written_kb: needed(&WRITTEN_KB)?,
            read_ms: value(&[("r_await", 1.0), ("await", 1.0)])?,
            write_ms: value(&[("w_await", 1.0), ("await", 1.0)])?,
            queue: value(&[("aqu-sz", 1.0), ("avgqu-sz", 1.0)])?,
            busy: value(&[("%util", 1.0)])?,
        };

        if !self.devices.contains_key(name) && self.devices.len() >= DEVICES_MAX {
            return Err(Refusal::at(line.number, format!("more than {DEVICES_MAX} devices")));
        }

        // A device that was absent from earlier reports has gaps there.
        let reports = self.reports.max(1);
        let of_device = self.devices.entry(name.to_owned()).or_default();
        if of_device.len() >= reports {
            return Err(Refusal::at(line.number, format!("`{name}` appears twice in a report")));
        }

        of_device.resize(reports - 1, None);
        of_device.push(Some(rates));
        Ok(())
    }

    /// Returns the name of the device with the database, as far as it is known.
    fn chosen(&mut self) -> Option<String> {
        let named = self.device.clone();
        if let Some(device) = named {
            if self.devices.contains_key(&device) {
                return Some(device);
            }
            let text = format!("it has no device `{device}`, so there are no figures of disks");
            self.doubts.push(Doubt::of_file("import::device", text));
            return None;
        }

        let is_active =
            |rates: &Option<DiskRates>| rates.is_some_and(|rates| rates.reads + rates.writes > 0.0);
        let active: Vec<&String> = self
            .devices
            .iter()
            .filter(|(_, reports)| reports.iter().any(is_active))
            .map(|(name, _)| name)
            .collect();
        if let [device] = active[..] {
            return Some(device.clone());
        }

        let names: Vec<&str> = active.iter().map(|name| name.as_str()).collect();
        let text = format!(
            "no `device` is named, and several were used, so there are no figures of disks: {}",
            names.join(", ")
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
        let interval = self.interval_s.unwrap_or(1.0);
        let is_whole = |rate: f64| (rate * interval - (rate * interval).round()).abs() < 0.021;
        let are_whole = |rates: &DiskRates| is_whole(rates.reads) && is_whole(rates.writes);

        let Some(Some(first)) = rates.first() else {
            return false;
        };
        let later: Vec<&DiskRates> = rates.iter().skip(1).flatten().collect();
        let whole = later.iter().filter(|rates| are_whole(rates)).count();
        let mostly_whole = whole as f64 >= WHOLE_SHARE_MIN * later.len() as f64;
        !are_whole(first) && !later.is_empty() && mostly_whole
    }

    fn samples(&mut self) -> HostSamples {
        let device = self.chosen();
        let rates = device.and_then(|device| self.devices.remove(&device)).unwrap_or_default();
        let mut published = PublishedSamples::default();
        for rates in rates.iter().flatten() {
            published.count += 1;
            published.reads += rates.reads;
            published.read_kb += rates.read_kb;
            published.writes += rates.writes;
            published.written_kb += rates.written_kb;
        }

        let reports = self.reports.max(rates.len());
        let sample = |report: usize| HostSample {
            switches: None,
            cpu: self.cpu.get(report).copied().flatten(),
            disk: rates.get(report).copied().flatten(),
        };
        let mut samples: Vec<HostSample> = (0..reports).map(sample).collect();
        if self.begins_since_boot(&rates) && !samples.is_empty() {
            samples.remove(0);
            let text = "the first report is the mean since boot, and is left out";
            self.doubts.push(Doubt::of_file("import::since-boot", text));
        }
        HostSamples { interval_s: self.interval_s, samples, published }
    }
}

/// Returns a date of `iostat` as `2025-03-17`; it writes `03/17/2025`, `03/17/25` or the former.
fn date_of(word: &str) -> Option<String> {
    let digits = word.chars().all(|letter| letter.is_ascii_digit() || "/-".contains(letter));
    if !digits {
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
