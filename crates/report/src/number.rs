//! How many decimals a figure gets: as the field prints it, but never so few that a small figure becomes 0.

/// A kind of figure, as far as its decimals go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Operations, rows, reads or context switches per second.
    PerSecond,
    /// Megabytes, percent of CPUs.
    OneDecimal,
    /// Things that are whole.
    Count,
    /// Reads, kilobytes or context switches per operation.
    PerOperation,
    /// Microseconds.
    Microseconds,
    /// Gigabytes.
    Gigabytes,
    /// Seconds, milliseconds shown.
    Seconds,
    /// How many times as much as there was to do.
    Amplification,
}

impl Figure {
    /// The kind of a metric by its name (methodology of the field, a8).
    pub(crate) fn of_metric(name: &str) -> Self {
        match name {
            "rmbps" | "wmbps" | "cpups" | "write_amplification" => Self::OneDecimal,
            "mb_sec" | "c_mbps" | "stall%" | "cache_hit%" => Self::OneDecimal,
            "c_wsecs" | "c_csecs" | "c_wsecs_settled" | "c_csecs_settled" => Self::OneDecimal,
            "uptime" | "u_cpu" | "s_cpu" => Self::OneDecimal,
            name if name.ends_with("_mb") => Self::OneDecimal,
            "others%" | "op_rest%" | "p1_of_median%" | "thickness%" | "cv%" => Self::OneDecimal,
            "zero_s" | "below_half_s" | "stalls" | "stalled_s" | "longest_stall_s" | "shifts"
            | "max_at_s" => Self::Count,
            "Nstall" | "l0_files_begin" | "l0_files" | "l0_files_max" | "levels_begin"
            | "levels" | "lsm_files" => Self::Count,
            "w_amp" | "w_amp_settled" | "wal_amp" | "r_amp" | "s_amp" => Self::Amplification,
            name if name.starts_with("debt_") || name == "cpu_mhz" => Self::Count,
            name if name.ends_with("_per_commit") => Self::PerOperation,
            "rows/event" => Self::PerOperation,
            "rpq" | "rkbpq" | "wpi" | "wkbpi" | "cspq" | "cs/o" | "r/o" | "rKB/o" | "wKB/o" => {
                Self::PerOperation
            }
            "cpupq" | "cpu/o" => Self::Microseconds,
            name if name.contains("_us_per_") => Self::Microseconds,
            "usec_op" => Self::Microseconds,
            name if name.starts_with("service_us_") || name.starts_with("response_us_") => {
                Self::Microseconds
            }
            "dbgb1" | "dbgb2" | "rss" => Self::Gigabytes,
            "lsm_sz" | "blob_sz" | "c_wgb" | "c_wgb_settled" | "b_rgb" | "b_wgb" => Self::Gigabytes,
            name if name.ends_with("_gb") => Self::Gigabytes,
            "maxop" | "stall_s" => Self::Seconds,
            _ => Self::PerSecond,
        }
    }

    /// The decimals of a column that holds `values`: one number for all of them, so that they line up.
    pub(crate) fn decimals(self, values: impl IntoIterator<Item = f64>) -> usize {
        let least = values
            .into_iter()
            .map(f64::abs)
            .filter(|value| *value > 0.0)
            .fold(f64::INFINITY, f64::min);
        match self {
            Self::PerSecond => decimals_of_rate(least),
            Self::OneDecimal => 1,
            Self::Count => 0,
            Self::Seconds => 3,
            Self::Amplification => 2,
            // As in the field, and more where that would hide all of a figure.
            Self::PerOperation if least >= 0.001 => 3,
            Self::PerOperation => 5,
            Self::Microseconds if least >= 100.0 => 0,
            Self::Microseconds => 1 + usize::from(least < 10.0),
            Self::Gigabytes if least >= 10.0 => 1,
            Self::Gigabytes => 3,
        }
    }
}

/// The decimals of a rate: three digits of a small one count, as many as a full scan of a large table needs.
fn decimals_of_rate(rate: f64) -> usize {
    if rate >= 10.0 {
        return 0;
    }
    (2.0 - rate.max(1e-4).log10().floor()) as usize
}

/// A rate by itself, as tables show it: `22293`, `3.41`, `0.0294`.
pub fn rate_text(per_second: f64) -> String {
    fixed(per_second, Figure::PerSecond.decimals([per_second]))
}

/// A number with so many decimals and without separators; a negative zero loses its sign.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_string(),
        _ => text,
    }
}

/// A share in percent, as the field prints it: nothing for none, and never 0.000 for some.
pub(crate) fn share(count: u64, total: u64) -> String {
    if count == 0 || total == 0 {
        return String::new();
    }
    let text = fixed(count as f64 / total as f64 * 100.0, 3);
    if text == "0.000" {
        "nonzero".to_string()
    } else {
        text
    }
}

/// A length of time for people: `12.3 s`, `4 min 5 s`, `2 h 3 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{} s", fixed(seconds, 1)),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A moment for people: `2026-11-21 19:02:11 UTC`.
pub(crate) fn moment(unix_ns: u64) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(unix_ns)) {
        Ok(timestamp) => timestamp.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{unix_ns} ns after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_not_zero_never_looks_like_zero() {
        assert_eq!(share(0, 1_000_000), "");
        assert_eq!(share(1, 1_000_000), "nonzero");
        assert_eq!(share(5, 1_000_000), "0.001");
        assert_eq!(share(7, 7), "100.000");
        assert_eq!(share(0, 0), "");
    }

    #[test]
    fn a_column_with_a_small_rate_gets_decimals() {
        assert_eq!(Figure::PerSecond.decimals([12_345.6, 99.0]), 0);
        assert_eq!(Figure::PerSecond.decimals([12_345.6, 0.0]), 0);
        assert_eq!(rate_text(12_345.6), "12346");
        assert_eq!(rate_text(9.876), "9.88");
        assert_eq!(rate_text(1.0), "1.00");
        assert_eq!(rate_text(1.0 / 34.0), "0.0294");
        assert_eq!(rate_text(0.0), "0");
        assert_eq!(Figure::Microseconds.decimals([2.5, 300.0]), 2);
        assert_eq!(Figure::Microseconds.decimals([]), 0);
        assert_eq!(Figure::PerOperation.decimals([0.0, 0.25]), 3);
        assert_eq!(Figure::PerOperation.decimals([0.0, 0.000_31]), 5);
        assert_eq!(Figure::PerOperation.decimals([0.0]), 3);
    }

    #[test]
    fn numbers_have_no_separators_and_no_negative_zero() {
        assert_eq!(fixed(1_234_567.8, 0), "1234568");
        assert_eq!(fixed(-0.0001, 3), "0.000");
        assert_eq!(fixed(-1.5, 1), "-1.5");
    }

    #[test]
    fn times_are_in_the_largest_units_that_say_enough() {
        assert_eq!(duration(12.34), "12.3 s");
        assert_eq!(duration(59.96), "1 min 0 s");
        assert_eq!(duration(245.0), "4 min 5 s");
        assert_eq!(duration(7380.0), "2 h 3 min");
        assert_eq!(moment(1_795_287_731_000_000_000), "2026-11-21 19:02:11 UTC");
    }
}
