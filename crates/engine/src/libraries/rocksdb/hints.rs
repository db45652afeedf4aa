//! Hints at the option that the author of a refused one may have meant.

use words::nearest;

use super::options::{OptionEntry, OptionsFile, bytes};

/// The options with a type of compression.
const OF_COMPRESSION: [&str; 3] =
    ["compression", "bottommost_compression", "blob_compression_type"];
/// The usual types of compression.
const COMPRESSIONS: [&str; 6] = [
    "kNoCompression",
    "kSnappyCompression",
    "kLZ4Compression",
    "kLZ4HCCompression",
    "kZlibCompression",
    "kZSTD",
];

/// Returns a question with what a refused option may have been meant to be; `None` if nothing is
/// near.
pub(super) fn hint(entry: &OptionEntry, defaults: &OptionsFile) -> Option<String> {
    if !defaults.knows(entry) {
        let name = nearest(&entry.name, defaults.names())?;
        return Some(format!("did you mean `{name}`?"));
    }

    if OF_COMPRESSION.contains(&entry.name.as_str()) {
        let all = COMPRESSIONS.join("`, `");
        let wanted = entry.value.to_ascii_lowercase();
        return Some(match COMPRESSIONS.iter().find(|known| short(known) == wanted) {
            Some(known) => format!("did you mean `{known}` (of `{all}`)?"),
            None => format!("did you mean one of `{all}`?"),
        });
    }

    let size = without_byte(&entry.value)?;
    Some(format!("did you mean `{size}`?"))
}

/// Returns the name of a type of compression as other programs write it: `lz4`.
fn short(compression: &str) -> String {
    let name = compression.strip_prefix('k').unwrap_or(compression);
    name.strip_suffix("Compression").unwrap_or(name).to_ascii_lowercase()
}

/// Returns a size without the `B` or `iB` of its unit: `64M` for `64MiB`; `None` for any other text.
fn without_byte(value: &str) -> Option<String> {
    let lower = value.to_ascii_lowercase();
    let number = lower.strip_suffix("ib").or_else(|| lower.strip_suffix('b'))?;
    let size = number.trim_end().replace(' ', "").to_ascii_uppercase();
    bytes(&size).map(|_| size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_option_has_a_hint() {
        let defaults = OptionsFile::parse(
            "[Version]\n  rocksdb_version=9.9.3\n[CFOptions \"default\"]\n  write_buffer_size=67108864\n  \
             compression=kSnappyCompression\n",
        );
        let hint_of = |is_table: bool, name: &str, value: &str| {
            hint(&OptionEntry::new(is_table, name, value), &defaults)
        };
        let ask = |text: &str| Some(format!("did you mean `{text}`?"));

        assert_eq!(hint_of(false, "write_bufer_size", "4M"), ask("write_buffer_size"));
        assert_eq!(hint_of(false, "no_such_option", "4M"), None);
        assert_eq!(hint_of(true, "block_cache", "64MiB"), ask("64M"));
        assert_eq!(hint_of(false, "write_buffer_size", "4 mb"), ask("4M"));
        assert_eq!(hint_of(false, "write_buffer_size", "much"), None);

        let lz4 = hint_of(false, "compression", "lz4").unwrap();
        assert!(lz4.starts_with("did you mean `kLZ4Compression` (of `kNoCompression`, "), "{lz4}");
        let unknown = hint_of(false, "compression", "kLZ5Compression").unwrap();
        assert!(unknown.starts_with("did you mean one of `kNoCompression`, "), "{unknown}");
    }
}
