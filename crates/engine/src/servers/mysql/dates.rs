//! Converts timestamps to the protocol's dates and times.

const DAY_SECONDS: i64 = 86_400;

/// Converts timestamps to the protocol's format. Caches the last day, because a statement's
/// timestamps are mostly of one day.
#[derive(Default)]
pub(super) struct Dates {
    /// The last day, counted from 1970-01-01, and its year, month and day.
    day: i64,
    date: Option<[u8; 4]>,
}

impl Dates {
    /// Returns the length, date and time in the protocol's format, and the microseconds.
    #[inline]
    pub(super) fn split(&mut self, unix_us: i64) -> ([u8; 8], u32) {
        let seconds = unix_us.div_euclid(1_000_000);
        // Below a million.
        let micros = unix_us.rem_euclid(1_000_000) as u32;
        let day = seconds.div_euclid(DAY_SECONDS);

        // Below a day's seconds.
        let second = seconds.rem_euclid(DAY_SECONDS) as u32;

        let date = match self.date {
            Some(date) if day == self.day => date,
            _ => {
                self.day = day;
                *self.date.insert(civil(day))
            }
        };

        // Each below 60.
        let time = [second / 3600, second / 60 % 60, second % 60].map(|part| part as u8);
        let mut date_and_time = [7; 8];
        date_and_time[1..5].copy_from_slice(&date);
        date_and_time[5..].copy_from_slice(&time);

        (date_and_time, micros)
    }
}

/// Converts a day since 1970-01-01 to its year (two bytes), month and day in the Gregorian
/// calendar. Eras of 400 years begin in March, so that a leap day is the last day of its year.
fn civil(day: i64) -> [u8; 4] {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;

    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);

    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };

    let year = year_of_era + era * 400 + i64::from(month <= 2);
    // The server's calendar ends in 9999.
    let [low, high] = (year.clamp(0, 9999) as u16).to_le_bytes();
    [low, high, month as u8, day_of_month as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(unix_us: i64) -> String {
        let ([length, low, high, month, day, hour, minute, second], micros) =
            Dates::default().split(unix_us);
        assert_eq!(length, 7);
        let year = u16::from_le_bytes([low, high]);
        format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
    }

    #[test]
    fn timestamps_are_converted_to_dates() {
        for (unix_us, expected) in [
            (0, "1970-01-01 00:00:00.000000"),
            (-1, "1969-12-31 23:59:59.999999"),
            (951_782_400_000_000, "2000-02-29 00:00:00.000000"),
            (1_700_000_000_123_456, "2023-11-14 22:13:20.123456"),
            (1_709_251_199_000_000, "2024-02-29 23:59:59.000000"),
            (4_107_542_400_000_000, "2100-03-01 00:00:00.000000"),
        ] {
            assert_eq!(shown(unix_us), expected);
        }
    }

    #[test]
    fn the_cached_day_is_used_only_for_itself() {
        let mut dates = Dates::default();
        let noon = 1_700_000_000_000_000;
        let first = dates.split(noon).0;
        assert_eq!(dates.split(noon + 1_000_000).0[..5], first[..5]);
        assert_ne!(dates.split(noon + 86_400_000_000).0[..5], first[..5]);
    }
}
