//! Files that were damaged in any way are refused, or read with doubts, and never stop the program.

use std::io::Write as _;

use super::{FIXTURES, read_text};
use crate::campaign::Campaign;
use crate::formats::{Format, FormatOptions, read};
use crate::{understand, write_runs};

/// The mutants of an ordinary test, and of one with `ASSAY_TEST_ALL`.
const MUTANTS: u64 = 700;
const ALL_MUTANTS: u64 = 10_500;

/// Numbers that overflow, or that nothing measures.
const EXTREMES: [&str; 12] = [
    "0",
    "-1",
    "18446744073709551615",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "NaN",
    "inf",
    "4294967296",
    "0.0000001",
    "49999999999999",
    "\u{ff11}",
];

/// Random numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

fn mutant(text: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.next(4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.next(bytes.len());
        match random.next(8) {
            0 => bytes[at] = random.next(256) as u8,
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..(at + random.next(200)).min(bytes.len()))),
            3 => {
                let part: Vec<u8> = bytes[at..(at + random.next(500)).min(bytes.len())].to_vec();
                let to = random.next(bytes.len());
                bytes.splice(to..to, part);
            }
            4 => {
                let (_, other) = FIXTURES[random.next(FIXTURES.len())];
                bytes.splice(at..at, other.bytes().take(600));
            }
            5 => bytes = swapped_lines(&bytes, random),
            _ => bytes = with_extreme(&bytes, at, random),
        }
    }
    bytes
}

fn swapped_lines(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let (a, b) = (random.next(lines.len()), random.next(lines.len()));
    lines.swap(a, b);
    lines.join(&b'\n')
}

/// Replaces the number at a place, or the next one.
fn with_extreme(bytes: &[u8], at: usize, random: &mut Random) -> Vec<u8> {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let Some(begin) = bytes[at..].iter().position(is_digit) else {
        return bytes.to_vec();
    };
    let begin = at + begin;
    let length = bytes[begin..].iter().take_while(|byte| is_digit(byte)).count();
    let mut changed = bytes.to_vec();
    changed.splice(begin..begin + length, EXTREMES[random.next(EXTREMES.len())].bytes());
    changed
}

#[test]
fn no_mutant_of_a_file_stops_its_reader() {
    let count = if std::env::var_os("ASSAY_TEST_ALL").is_some() { ALL_MUTANTS } else { MUTANTS };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let options = FormatOptions::default();
    let mut refused = 0;
    for number in 0..count {
        let (format, text) = FIXTURES[number as usize % FIXTURES.len()];
        let bytes = mutant(text, &mut random);
        refused += u64::from(read(&bytes[..], Some(format), &options, 1 << 20).is_err());
        // A mutant may be of another format.
        let _ = read(&bytes[..], None, &options, 1 << 20);
    }
    assert!(refused > count / 10, "{refused} of {count} mutants are refused");
    assert!(refused < count * 9 / 10, "{refused} of {count} mutants are refused");
}

#[test]
fn mutants_become_records_or_are_refused() {
    let mut random = Random(7);
    let folder = tempfile::tempdir().unwrap();
    for number in 0..140 {
        let (format, text) = FIXTURES[number % FIXTURES.len()];
        let path = folder.path().join(format!("a.b.{number}.c{}.{}", number % 3, format.name()));
        fs_err::write(path, mutant(text, &mut random)).unwrap();
    }

    let campaign = Campaign::parse(
        "name = \"mutants\"\n[[files]]\npath = \"{build}.{config}.{step}.c{clients}.*\"\n",
    )
    .unwrap();
    let understood = understand(folder.path(), &campaign).unwrap();
    assert!(understood.has_refusals());
    let results = tempfile::tempdir().unwrap();
    let runs = write_runs(&understood, &campaign, results.path()).unwrap();
    assert!(runs[0].step_count > 20, "{runs:?}");
}

#[test]
fn archives_with_links_and_paths_that_lead_out_are_refused_entry_by_entry() {
    let mut builder = tar::Builder::new(Vec::new());
    let text = super::fixture(Format::Sysbench);
    let mut add = |name: &[u8], kind: tar::EntryType, content: &str| {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, content.as_bytes()).unwrap();
    };
    add(b"x.a.b.pk1/sb.o.scan.dop4", tar::EntryType::Regular, text);
    add(b"../evil", tar::EntryType::Regular, text);
    add(b"x.a.b.pk1/sb.o.link.dop4", tar::EntryType::Symlink, "");
    let packed = builder.into_inner().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.tar.gz");
    let file = fs_err::File::create(&path).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    encoder.write_all(&packed).unwrap();
    encoder.finish().unwrap();

    let toml = "[[files]]\npath = \"x.{target}.pk1/sb.o.{step}.dop{clients}\"\n";
    let campaign = Campaign::parse(toml).unwrap();
    let understood = understand(&path, &campaign).unwrap();
    assert_eq!(understood.step_count(), 1);
    let refused: Vec<String> = understood.refusals().map(ToString::to_string).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].contains("leads out of the archive"), "{refused:?}");
    assert!(refused[1].contains("link"), "{refused:?}");

    // An archive that is cut off still has its first files.
    let bytes = fs_err::read(&path).unwrap();
    fs_err::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(understand(&path, &campaign).unwrap().has_refusals());
}

#[test]
fn a_reader_keeps_no_text_of_a_file() {
    let secret = "sysbench --mysql-password=hunter2 --threads=4 run\n";
    let text = format!("{secret}{}", super::fixture(Format::Sysbench));
    let read = read_text(&text, Some(Format::Sysbench)).unwrap();
    assert!(!format!("{read:?}").contains("hunter2"));
}
