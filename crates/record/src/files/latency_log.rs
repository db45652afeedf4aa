//! HdrHistogram interval logs, version 1.3, of V2 histograms with DEFLATE; values are nanoseconds.
//! `latency.hlog` has a line for each second and tag, `latency_total.hlog` a line for each tag. Any
//! tool that reads such logs reads these.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, IntervalLogWriterError,
    LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

use words::LATENCY_NS_MAX;

use super::checksum::ChecksummedFile;
use crate::{RecordError, StepFile};

/// More than the longest line, whose histogram has a count for each bucket.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Returns an empty histogram of nanoseconds with the bounds of all histograms of a record: 1 ns to
/// [`LATENCY_NS_MAX`], three significant digits.
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are constants and valid")
}

/// A bucket of a histogram, and the number of times in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyCount {
    /// The shortest time of the bucket, in nanoseconds.
    pub lowest_ns: u64,
    /// The time in the middle of the bucket, in nanoseconds.
    pub median_ns: u64,
    /// The longest time of the bucket, in nanoseconds.
    pub highest_ns: u64,
    /// The number of times that are in the bucket; at least 1.
    pub count: u64,
}

/// Returns the buckets of a histogram that are not empty, the shortest times first. Each of its
/// methods looks at all of some 30,000 buckets, and this function does so once.
pub fn latency_counts(histogram: &Histogram<u64>) -> Vec<LatencyCount> {
    let mut counts = Vec::new();
    for bucket in histogram.iter_recorded() {
        let highest_ns = bucket.value_iterated_to();
        counts.push(LatencyCount {
            lowest_ns: histogram.lowest_equivalent(highest_ns),
            median_ns: histogram.median_equivalent(highest_ns),
            highest_ns,
            count: bucket.count_at_value(),
        });
    }
    counts
}

/// Writes an interval log.
pub(crate) struct LatencyLogWriter {
    path: PathBuf,
    file: BufWriter<ChecksummedFile>,
    serializer: V2DeflateSerializer,
    /// The start of the step's clock, until the header is written.
    header: Option<u64>,
}

impl LatencyLogWriter {
    pub(crate) fn new(file: fs_err::File, started_unix_ns: u64) -> Self {
        Self {
            path: file.path().to_owned(),
            file: BufWriter::new(ChecksummedFile::new(file)),
            serializer: V2DeflateSerializer::new(),
            header: Some(started_unix_ns),
        }
    }

    /// Sets the start of the step's clock; has no effect after the first write.
    pub(crate) fn started(&mut self, started_unix_ns: u64) {
        if let Some(started) = &mut self.header {
            *started = started_unix_ns;
        }
    }

    fn write_header(&mut self) -> Result<(), RecordError> {
        let Some(started_unix_ns) = self.header.take() else {
            return Ok(());
        };

        let started = UNIX_EPOCH + Duration::from_nanos(started_unix_ns);
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("[Values and Interval_Max are nanoseconds; tags are KIND.service, KIND.response (of a schedule) and KIND.failed]")
            .with_start_time(started)
            .with_base_time(started);

        let error = || RecordError::io("write", &self.path);
        builder.begin_log_with(&mut self.file, &mut self.serializer).map_err(error())?;
        self.file
            .write_all(b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n")
            .map_err(error())
    }

    /// Adds one interval of one tag.
    pub(crate) fn write(
        &mut self,
        second: u32,
        length: Duration,
        tag: &str,
        histogram: &Histogram<u64>,
    ) -> Result<(), RecordError> {
        self.write_header()?;
        let Some(tag) = Tag::new(tag) else {
            let what = format!("the tag `{tag}` (no commas, spaces or line ends)");
            return Err(RecordError::unrecordable(&self.path, what));
        };

        // A builder without a header only continues the log.
        IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.file, &mut self.serializer)
            .map_err(RecordError::io("write", &self.path))?
            .write_histogram(histogram, Duration::from_secs(second.into()), length, Some(tag))
            .map_err(|error| match error {
                IntervalLogWriterError::IoError(error) => {
                    RecordError::io("write", &self.path)(error)
                }
                IntervalLogWriterError::SerializeError(error) => {
                    RecordError::unrecordable(&self.path, format!("a histogram ({error})"))
                }
            })
    }

    /// Writes the header if nothing else was written, and makes the file durable.
    pub(crate) fn finish(mut self) -> Result<StepFile, RecordError> {
        self.write_header()?;
        let file = self
            .file
            .into_inner()
            .map_err(|error| RecordError::io("write", &self.path)(error.into_error()))?;
        file.finish()
    }
}

/// One line of the log, whose histogram is not decoded.
#[derive(Clone, Debug)]
pub struct LatencyLine {
    /// The start of the interval, since the step began.
    pub start: Duration,
    /// The length of the interval.
    pub length: Duration,
    /// The kind of operation and of time: `insert.service`, `insert.response`.
    pub tag: String,
    /// The largest value, in nanoseconds.
    pub largest: f64,
    /// A V2 histogram of nanoseconds, compressed with DEFLATE, in base 64.
    pub histogram: String,
}

/// Reads an interval log line by line.
pub struct Latencies {
    /// `None` if the step is not finished.
    file: Option<BufReader<fs_err::File>>,
}

impl Latencies {
    /// Reads the log in an open file, if any.
    pub(crate) fn new(file: Option<fs_err::File>) -> Self {
        Self { file: file.map(BufReader::new) }
    }

    /// Returns the sum of all seconds for each tag.
    ///
    /// # Errors
    /// A line is damaged.
    pub fn merged(self) -> Result<BTreeMap<String, Histogram<u64>>, RecordError> {
        let mut by_tag: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
        let mut deserializer = Deserializer::new();
        let add = |entry: &IntervalLogHistogram<'_>| {
            let histogram = decode(entry, &mut deserializer)?;
            let total = by_tag.entry(tag_of(entry)?).or_insert_with(latency_histogram);
            total.add(&histogram).map_err(|error| error.to_string())
        };

        self.each(add, |()| Ok::<_, RecordError>(()))?;
        Ok(by_tag)
    }

    /// Calls `visit` with each line in order, without decoding it.
    ///
    /// # Errors
    /// A line is damaged, or `visit` fails.
    pub fn for_each_line<E: From<RecordError>>(
        self,
        visit: impl FnMut(LatencyLine) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each(as_written, visit)
    }

    /// Reads each line that has a histogram with `read`, and passes the result to `visit`.
    fn each<T, E: From<RecordError>>(
        self,
        mut read: impl FnMut(&IntervalLogHistogram<'_>) -> Result<T, String>,
        mut visit: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(mut file) = self.file else {
            return Ok(());
        };

        let path = file.get_ref().path().to_owned();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let length = (&mut file)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)
                .map_err(RecordError::io("read", &path))?;
            if length == 0 {
                break;
            }

            let damaged = |what| RecordError::damaged(&path, format!("line {number}: {what}"));
            if length as u64 == LINE_BYTES_MAX {
                return Err(damaged("it is too long".into()).into());
            }
            match IntervalLogIterator::new(&line).next() {
                None | Some(Ok(LogEntry::StartTime(_) | LogEntry::BaseTime(_))) => {}
                Some(Ok(LogEntry::Interval(entry))) => visit(read(&entry).map_err(damaged)?)?,
                Some(Err(_)) => return Err(damaged("not a line of an interval log".into()).into()),
            }
        }

        Ok(())
    }
}

fn tag_of(entry: &IntervalLogHistogram<'_>) -> Result<String, String> {
    let tag = entry.tag().ok_or("a histogram without a tag")?;
    Ok(tag.as_str().to_owned())
}

fn as_written(entry: &IntervalLogHistogram<'_>) -> Result<LatencyLine, String> {
    Ok(LatencyLine {
        start: entry.start_timestamp(),
        length: entry.duration(),
        tag: tag_of(entry)?,
        largest: entry.max(),
        histogram: entry.encoded_histogram().to_owned(),
    })
}

/// The largest histogram that is read. Assay's have a few thousand buckets of at most 9 bytes.
const PAYLOAD_BYTES_MAX: u32 = 4 << 20;

/// Refuses a histogram that claims to be larger: the decoder makes room for it before it reads.
fn require_small_payload(compressed: &[u8]) -> Result<(), String> {
    /// The cookie of the compressed form, and the length of what follows.
    const OUTER_BYTES: usize = 8;
    /// The cookie of a histogram, and the length of its counts.
    const INNER_BYTES: usize = 8;

    let zlib = compressed.get(OUTER_BYTES..).unwrap_or_default();
    let mut head = [0; INNER_BYTES];
    flate2::read::ZlibDecoder::new(zlib)
        .read_exact(&mut head)
        .map_err(|error| error.to_string())?;

    let [.., a, b, c, d] = head;
    if u32::from_be_bytes([a, b, c, d]) > PAYLOAD_BYTES_MAX {
        return Err("a histogram is too large".to_owned());
    }

    Ok(())
}

fn decode(
    entry: &IntervalLogHistogram<'_>,
    deserializer: &mut Deserializer,
) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD.decode(entry.encoded_histogram()).map_err(|error| error.to_string())?;
    require_small_payload(&bytes)?;
    deserializer.deserialize(&mut bytes.as_slice()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_that_claims_to_be_huge_is_refused_before_room_is_made_for_it() {
        let claiming = |payload_bytes: u32| {
            let head = [[0x1c, 0x84, 0x93, 0x13], payload_bytes.to_be_bytes()].concat();
            let mut zlib = flate2::write::ZlibEncoder::new(vec![0; 8], flate2::Compression::fast());
            zlib.write_all(&head).unwrap();
            require_small_payload(&zlib.finish().unwrap())
        };
        assert_eq!(claiming(PAYLOAD_BYTES_MAX), Ok(()));
        assert!(claiming(u32::MAX).is_err());
        assert!(require_small_payload(&[]).is_err());
    }
}
