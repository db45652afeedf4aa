//! The metrics of another host, read from Prometheus's `node_exporter` on it.
//!
//! The exporter may be anybody's: Assay bounds the size of its page and the time that it may take,
//! follows no redirects, and leaves out what it does not understand.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::columns::{ColumnIndex, Sample};
use crate::parse::{Metric, metrics};
use crate::timing::now;

/// The largest page: that of a host with 512 processors and 200 disks has 2 MB.
const PAGE_BYTES_MAX: usize = 16 << 20;
/// The most bytes before the page.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The time for a page, from the connection to its last byte.
const TIME_MAX: Duration = Duration::from_millis(900);
/// The metric without which a page is not that of a host.
const CPU_SECONDS: &str = "node_cpu_seconds_total";
const NS_PER_S: f64 = 1e9;

/// The exporter of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExporterSource {
    /// The host and the port: `db:9100`.
    pub address: String,
    /// The path with its query: `/metrics`.
    pub path: String,
    /// The disks whose counters are summed; empty for all whole disks.
    pub disks: Vec<String>,
}

/// Reads the exporter of a host.
#[derive(Debug)]
pub(crate) struct Exporter {
    source: ExporterSource,
    /// The addresses of the host, once they are known.
    addresses: Vec<SocketAddr>,
    /// The time for a page: [`TIME_MAX`], but in tests whose machine may be slow.
    time_max: Duration,
    /// The maxima of the times that may decrease.
    idle_ns: [(ColumnIndex, u64); 2],
    /// The pages that could not be read, and why the last one could not.
    failures: Option<ExporterFailures>,
}

/// The pages of an exporter that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExporterFailures {
    /// Their number.
    pub count: u32,
    /// The reason of the last one.
    pub last: String,
}

impl Exporter {
    pub(crate) fn new(source: ExporterSource) -> Self {
        Self {
            source,
            addresses: Vec::new(),
            time_max: TIME_MAX,
            idle_ns: [(ColumnIndex::CpuIdle, 0), (ColumnIndex::CpuIowait, 0)],
            failures: None,
        }
    }

    /// Returns the columns of the host. They have no values if the page cannot be read, which is noted.
    pub(crate) fn sample(&mut self) -> Sample {
        let page = self.page();
        let mut row = match page.and_then(|page| read_page(&page, &self.source.disks)) {
            Ok(row) => row,
            Err(why) => {
                let count = self.failures.as_ref().map_or(0, |failures| failures.count);
                self.failures = Some(ExporterFailures { count: count + 1, last: why });
                return Sample::new();
            }
        };

        // The kernel documents that idle times may decrease.
        for (column, max_ns) in &mut self.idle_ns {
            if let Some(ns) = row.value(*column) {
                *max_ns = ns.max(*max_ns);
                row.set(*column, *max_ns);
            }
        }
        row
    }

    /// Returns the failures since the last call.
    pub(crate) fn take_failures(&mut self) -> Option<ExporterFailures> {
        self.failures.take()
    }

    /// Requests the page.
    fn page(&mut self) -> Result<String, String> {
        let until = now() + self.time_max;
        if self.addresses.is_empty() {
            let found = self.source.address.to_socket_addrs();
            let found = found.map_err(|error| format!("its host is unknown: {error}"))?;
            self.addresses = found.collect();
        }

        let mut stream = connect(&self.addresses, until)?;
        let ExporterSource { address, path, .. } = &self.source;
        // With this version, the page comes in one piece, and ends with the connection.
        let request = format!(
            "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: text/plain;version=0.0.4\r\n\
             User-Agent: assay\r\nConnection: close\r\n\r\n"
        );
        stream.set_write_timeout(Some(self.time_max)).map_err(failed)?;
        stream.write_all(request.as_bytes()).map_err(failed)?;

        let answer = read_all(&mut stream, until)?;
        Ok(String::from_utf8_lossy(body_of(&answer)?).into_owned())
    }
}

/// Connects to the first address that answers.
fn connect(addresses: &[SocketAddr], until: Instant) -> Result<TcpStream, String> {
    let mut why = "its host has no address".to_owned();
    for address in addresses {
        let left = until.saturating_duration_since(now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = failed(error),
        }
    }
    Err(why)
}

/// Reads an answer to its end.
fn read_all(stream: &mut TcpStream, until: Instant) -> Result<Vec<u8>, String> {
    let mut answer = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let left = until.saturating_duration_since(now());
        if left.is_zero() {
            return Err(format!("it takes more than {} ms", TIME_MAX.as_millis()));
        }
        stream.set_read_timeout(Some(left)).map_err(failed)?;

        match stream.read(&mut piece) {
            Ok(0) => return Ok(answer),
            Ok(count) => answer.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
        if answer.len() > HEAD_BYTES_MAX + PAGE_BYTES_MAX {
            return Err(format!("its page is larger than {} MiB", PAGE_BYTES_MAX >> 20));
        }
    }
}

fn failed(error: std::io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("it takes more than {} ms", TIME_MAX.as_millis())
        }
        _ => error.to_string(),
    }
}

/// Returns the page of an answer. Another status than 200 is an error: redirects are not followed.
fn body_of(answer: &[u8]) -> Result<&[u8], String> {
    const END: &[u8] = b"\r\n\r\n";
    let head_end = answer.windows(END.len()).take(HEAD_BYTES_MAX).position(|four| four == END);
    let head_end = head_end.ok_or("its answer is not HTTP")?;
    let head = String::from_utf8_lossy(&answer[..head_end]);
    let body = &answer[head_end + END.len()..];

    let mut lines = head.lines();
    let mut status = lines.next().unwrap_or_default().split_whitespace();
    if !status.next().is_some_and(|version| version.starts_with("HTTP/1.")) {
        return Err("its answer is not HTTP".to_owned());
    }
    let code: String = status.next().unwrap_or_default().chars().take(3).collect();
    if code != "200" {
        let shown: String = code.escape_default().collect();
        return Err(format!("it answers with status {shown} instead of 200"));
    }

    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "transfer-encoding" | "content-encoding" if value != "identity" => {
                return Err("its page is encoded, although Assay did not ask for that".to_owned());
            }
            "content-length" if value.parse() != Ok(body.len()) => {
                return Err("its page is incomplete".to_owned());
            }
            _ => {}
        }
    }
    Ok(body)
}

/// The columns of times of processors, by the label `mode`.
const MODES: [(&str, ColumnIndex); 8] = [
    ("user", ColumnIndex::CpuUser),
    ("nice", ColumnIndex::CpuNice),
    ("system", ColumnIndex::CpuSystem),
    ("idle", ColumnIndex::CpuIdle),
    ("iowait", ColumnIndex::CpuIowait),
    ("irq", ColumnIndex::CpuIrq),
    ("softirq", ColumnIndex::CpuSoftirq),
    ("steal", ColumnIndex::CpuSteal),
];

/// Metrics of the whole host, their factors, and their columns.
const OF_HOST: [(&str, f64, ColumnIndex); 21] = [
    ("node_context_switches_total", 1.0, ColumnIndex::ContextSwitch),
    ("node_forks_total", 1.0, ColumnIndex::Created),
    ("node_procs_running", 1.0, ColumnIndex::Runnable),
    ("node_procs_blocked", 1.0, ColumnIndex::Blocked),
    ("node_netstat_Tcp_RetransSegs", 1.0, ColumnIndex::TcpRetransmit),
    ("node_memory_MemFree_bytes", 1.0, ColumnIndex::MemoryFree),
    ("node_memory_MemAvailable_bytes", 1.0, ColumnIndex::MemoryAvailable),
    ("node_memory_Cached_bytes", 1.0, ColumnIndex::MemoryCached),
    ("node_memory_Dirty_bytes", 1.0, ColumnIndex::MemoryDirty),
    ("node_memory_Writeback_bytes", 1.0, ColumnIndex::MemoryWriteback),
    // The kernel counts these in KiB, not in pages.
    ("node_vmstat_pgpgin", 1024.0, ColumnIndex::PageIn),
    ("node_vmstat_pgpgout", 1024.0, ColumnIndex::PageOut),
    ("node_vmstat_pswpin", 1.0, ColumnIndex::SwapIn),
    ("node_vmstat_pswpout", 1.0, ColumnIndex::SwapOut),
    ("node_vmstat_pgfault", 1.0, ColumnIndex::Fault),
    ("node_vmstat_pgmajfault", 1.0, ColumnIndex::MajorFault),
    ("node_pressure_cpu_waiting_seconds_total", NS_PER_S, ColumnIndex::PressureCpuSome),
    ("node_pressure_io_waiting_seconds_total", NS_PER_S, ColumnIndex::PressureIoSome),
    ("node_pressure_io_stalled_seconds_total", NS_PER_S, ColumnIndex::PressureIoFull),
    ("node_pressure_memory_waiting_seconds_total", NS_PER_S, ColumnIndex::PressureMemorySome),
    ("node_pressure_memory_stalled_seconds_total", NS_PER_S, ColumnIndex::PressureMemoryFull),
];

/// Metrics of each disk, their factors, and their columns.
const OF_DISKS: [(&str, f64, ColumnIndex); 14] = [
    ("node_disk_reads_completed_total", 1.0, ColumnIndex::DiskReadCount),
    ("node_disk_read_bytes_total", 1.0, ColumnIndex::DiskReadBytes),
    ("node_disk_read_time_seconds_total", NS_PER_S, ColumnIndex::DiskReadNs),
    ("node_disk_writes_completed_total", 1.0, ColumnIndex::DiskWriteCount),
    ("node_disk_written_bytes_total", 1.0, ColumnIndex::DiskWriteBytes),
    ("node_disk_write_time_seconds_total", NS_PER_S, ColumnIndex::DiskWriteNs),
    ("node_disk_discards_completed_total", 1.0, ColumnIndex::DiskDiscardCount),
    ("node_disk_discarded_sectors_total", 512.0, ColumnIndex::DiskDiscardBytes),
    ("node_disk_discard_time_seconds_total", NS_PER_S, ColumnIndex::DiskDiscardNs),
    ("node_disk_flush_requests_total", 1.0, ColumnIndex::DiskFlushCount),
    ("node_disk_flush_requests_time_seconds_total", NS_PER_S, ColumnIndex::DiskFlushNs),
    ("node_disk_io_time_seconds_total", NS_PER_S, ColumnIndex::DiskIoNs),
    ("node_disk_io_time_weighted_seconds_total", NS_PER_S, ColumnIndex::DiskQueueNs),
    ("node_disk_io_now", 1.0, ColumnIndex::DiskInflight),
];

/// Metrics of each network interface, and their columns.
const OF_INTERFACES: [(&str, ColumnIndex); 4] = [
    ("node_network_receive_bytes_total", ColumnIndex::NetworkReceivedBytes),
    ("node_network_receive_packets_total", ColumnIndex::NetworkReceivedPackets),
    ("node_network_transmit_bytes_total", ColumnIndex::NetworkSentBytes),
    ("node_network_transmit_packets_total", ColumnIndex::NetworkSentPackets),
];

/// The beginnings of names of devices above disks, which count the same requests again, and of
/// devices that are no disks.
const NO_DISKS: [&str; 9] = ["dm-", "md", "loop", "ram", "zram", "sr", "fd", "drbd", "bcache"];
/// The beginnings of names of interfaces whose packets another interface has as well, or that leave
/// no host.
const NO_INTERFACES: [&str; 10] =
    ["lo", "veth", "docker", "br-", "virbr", "tun", "tap", "bond", "cni", "wg"];

/// Returns the columns that a page has.
fn read_page(page: &str, disks: &[String]) -> Result<Sample, String> {
    let mut row = Sample::new();
    let mut swap_total = None;
    let mut swap_free = None;
    let mut found_disks = BTreeSet::new();
    let mut has_cpu = false;

    for metric in metrics(page) {
        match metric.name {
            CPU_SECONDS => has_cpu |= add_cpu(&mut row, &metric),
            "node_memory_SwapTotal_bytes" => swap_total = Some(metric.value.round() as u64),
            "node_memory_SwapFree_bytes" => swap_free = Some(metric.value as u64),
            // The maximum of all processors, so that idle ones don't lower it.
            "node_cpu_scaling_frequency_hertz" => {
                let khz = (metric.value / 1e3) as u64;
                let known = row.value(ColumnIndex::CpuFrequency).unwrap_or(0);
                row.set(ColumnIndex::CpuFrequency, khz.max(known));
            }
            name if name.starts_with("node_disk_") => {
                if let Some(disk) = add_disk(&mut row, &metric, disks) {
                    found_disks.insert(disk);
                }
            }
            name if name.starts_with("node_network_") => add_interface(&mut row, &metric),
            name => {
                if let Some((_, factor, column)) = OF_HOST.iter().find(|known| known.0 == name) {
                    row.set(*column, (metric.value * factor).round() as u64);
                }
            }
        }
    }

    if !has_cpu {
        return Err(format!("its page has no `{CPU_SECONDS}`: it is not that of a node_exporter"));
    }
    if let Some(missing) = disks.iter().find(|disk| !found_disks.contains(*disk)) {
        return Err(format!("its page has no disk `{missing}`"));
    }

    let swap_used = swap_total.zip(swap_free).map(|(total, free)| total.saturating_sub(free));
    row.set(ColumnIndex::SwapUsed, swap_used);
    Ok(row)
}

/// Adds the time of one processor in one mode. Returns whether the line has one.
fn add_cpu(row: &mut Sample, metric: &Metric<'_>) -> bool {
    let Some(mode) = metric.label("mode") else {
        return false;
    };
    let Some((_, column)) = MODES.iter().find(|(name, _)| *name == mode) else {
        return false;
    };
    row.add(*column, (metric.value * NS_PER_S).round() as u64);
    true
}

/// Adds a counter of a disk that is among those to sum; all whole disks, if none are named. Returns
/// the disk.
fn add_disk(row: &mut Sample, metric: &Metric<'_>, disks: &[String]) -> Option<String> {
    let (_, factor, column) = OF_DISKS.iter().find(|known| known.0 == metric.name)?;
    let disk = metric.label("device")?;
    let is_wanted = if disks.is_empty() {
        !NO_DISKS.iter().any(|begin| disk.starts_with(begin))
    } else {
        disks.iter().any(|wanted| *wanted == *disk)
    };
    if !is_wanted {
        return None;
    }

    row.add(*column, (metric.value * factor).round() as u64);
    Some(disk.into_owned())
}

/// Adds a counter of an interface whose packets leave the host.
fn add_interface(row: &mut Sample, metric: &Metric<'_>) {
    let Some((_, column)) = OF_INTERFACES.iter().find(|known| known.0 == metric.name) else {
        return;
    };
    let Some(interface) = metric.label("device") else {
        return;
    };
    if !NO_INTERFACES.iter().any(|begin| interface.starts_with(begin)) {
        row.add(*column, metric.value.round() as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const PAGE: &str = "\
        # HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.\n\
        node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 1.5\n\
        node_cpu_seconds_total{cpu=\"1\",mode=\"user\"} 2\n\
        node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 100.25\n\
        node_cpu_scaling_frequency_hertz{cpu=\"0\"} 2e+09\n\
        node_cpu_scaling_frequency_hertz{cpu=\"1\"} 1e+09\n\
        node_context_switches_total 1.23456789e+08\n\
        node_disk_reads_completed_total{device=\"sda\"} 10\n\
        node_disk_reads_completed_total{device=\"sdb\"} 5\n\
        node_disk_reads_completed_total{device=\"dm-0\"} 15\n\
        node_disk_discarded_sectors_total{device=\"sda\"} 2\n\
        node_network_receive_bytes_total{device=\"lo\"} 7\n\
        node_network_receive_bytes_total{device=\"eth0\"} 9\n\
        node_memory_SwapTotal_bytes 100\n\
        node_memory_SwapFree_bytes 40\n\
        node_vmstat_pgpgin 3\n\
        node_pressure_io_waiting_seconds_total 0.5\n";

    fn source(address: &str) -> ExporterSource {
        let (address, path) = (address.to_owned(), "/metrics".to_owned());
        ExporterSource { address, path, disks: Vec::new() }
    }

    #[test]
    fn a_page_gives_the_columns_of_a_local_sample() {
        let row = read_page(PAGE, &[]).unwrap();
        for (column, expected) in [
            ("cpu_user_ns", Some(3_500_000_000)),
            ("cpu_idle_ns", Some(100_250_000_000)),
            ("cpu_frequency_khz", Some(2_000_000)),
            ("context_switch_count", Some(123_456_789)),
            ("disk_read_count", Some(15)),
            ("disk_discard_bytes", Some(1024)),
            ("network_received_bytes", Some(9)),
            ("swap_used_bytes", Some(60)),
            ("page_in_bytes", Some(3072)),
            ("pressure_io_some_ns", Some(500_000_000)),
            // What the page does not have is not applicable.
            ("cpu_steal_ns", None),
            ("disk_write_count", None),
            ("server_cpu_user_ns", None),
        ] {
            assert_eq!(row.get(column), expected, "{column}");
        }
    }

    #[test]
    fn only_the_disks_that_are_named_count() {
        let reads = |disk: &str| {
            let row = read_page(PAGE, &[disk.to_owned()]);
            row.map(|row| row.get("disk_read_count"))
        };
        assert_eq!(reads("dm-0"), Ok(Some(15)));
        assert_eq!(reads("sdb"), Ok(Some(5)));
        assert_eq!(reads("sdz"), Err("its page has no disk `sdz`".to_owned()));
    }

    #[test]
    fn a_page_of_something_else_is_no_sample() {
        for page in ["", "<html>", "pg_up 1\n", "node_cpu_seconds_total{mode=\"x\"} 1\n"] {
            let error = read_page(page, &[]).unwrap_err();
            assert!(error.contains("not that of a node_exporter"), "{error}");
        }
        // Values beyond all bounds are no panic.
        let page = "node_cpu_seconds_total{mode=\"user\"} 1e300\n".repeat(3);
        assert_eq!(read_page(&page, &[]).unwrap().get("cpu_user_ns"), Some(i64::MAX));
    }

    #[test]
    fn answers_that_are_no_plain_page_are_refused() {
        let of = |answer: &str| body_of(answer.as_bytes()).map(|body| body.len());
        assert_eq!(of("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab"), Ok(2));
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\nabc"), Ok(3));
        for (answer, why) in [
            ("", "not HTTP"),
            ("\r\n\r\n", "not HTTP"),
            ("SSH-2.0-x\r\n\r\n", "not HTTP"),
            ("HTTP/1.0 302 Found\r\nLocation: http://elsewhere/\r\n\r\n", "status 302"),
            ("HTTP/1.0 \u{1b}[31m\r\n\r\n", "status \\u{1b}"),
            ("HTTP/1.0\r\n\r\n", "status"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "encoded"),
            ("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nab", "incomplete"),
        ] {
            let error = of(answer).unwrap_err();
            assert!(error.contains(why), "{answer:?}: {error}");
        }
        assert!(body_of(&vec![b'x'; 1 << 20]).is_err());
    }

    /// Serves each of these answers once, and returns the address.
    fn serve(answers: Vec<Vec<u8>>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                // A client that has read enough hangs up.
                let _ = stream.write_all(&answer);
            }
        });
        address
    }

    #[test]
    fn a_page_that_can_t_be_read_leaves_a_gap_and_a_remark() {
        let good = format!("HTTP/1.0 200 OK\r\n\r\n{PAGE}").into_bytes();
        let moved = b"HTTP/1.0 301 Moved\r\nLocation: http://127.0.0.1/\r\n\r\n".to_vec();
        let mut exporter = Exporter {
            time_max: Duration::from_secs(60),
            ..Exporter::new(source(&serve(vec![good, moved])))
        };

        assert_eq!(exporter.sample().get("disk_read_count"), Some(15));
        assert_eq!(exporter.take_failures(), None);
        assert_eq!(exporter.sample().get("cpu_user_ns"), None);
        // By now nobody listens.
        exporter.sample();
        assert_eq!(exporter.take_failures().map(|failures| failures.count), Some(2));
        assert_eq!(exporter.take_failures(), None);
    }

    #[test]
    fn a_page_without_end_and_a_page_that_never_comes_are_given_up() {
        let endless = vec![b'x'; HEAD_BYTES_MAX + PAGE_BYTES_MAX + (1 << 20)];
        let mut exporter = Exporter::new(source(&serve(vec![endless])));
        exporter.sample();
        assert!(exporter.take_failures().is_some());

        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut exporter = Exporter::new(source(&silent.local_addr().unwrap().to_string()));
        exporter.sample();
        let failures = exporter.take_failures().unwrap();
        assert!(failures.last.contains("more than 900 ms"), "{failures:?}");
    }

    #[test]
    fn no_page_makes_the_reader_panic() {
        // Cuts a page everywhere, and replaces each letter by one that means something.
        for at in 0..PAGE.len() {
            let _ = read_page(&PAGE[..at], &[]);
            for letter in ["{", "}", "\"", "\\", "=", "\n", "e", "9", " "] {
                let page = format!("{}{letter}{}", &PAGE[..at], &PAGE[at + 1..]);
                let _ = read_page(&page, &[]);
                let _ = body_of(page.as_bytes());
            }
        }
    }
}
