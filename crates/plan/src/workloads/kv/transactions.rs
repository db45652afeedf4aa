//! The table of a step `randomtransaction`. The defaults are those of `db_bench`.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::reading::context::{Context, Field, Section};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::Flag;
use crate::spec::KvTransactions;

const SETS: u32 = 2;
const SETS_MAX: u64 = 9999;
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);
/// The library counts whole milliseconds, and takes 0 for no wait at all.
const LOCK_TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(3600);

/// Reads the parameters of a step on `keys` keys.
pub(super) fn read(
    cx: &mut Context<'_>,
    section: &mut Section,
    keys: &Field<u64>,
) -> KvTransactions {
    let most = keys.value.min(SETS_MAX) as u32;
    let sets = Quantity::count(1..=most);
    let sets = cx.inherited(section, "transaction-sets", &sets, keys, SETS.min(most)).value;

    let most = keys.value / u64::from(sets);
    let of_a_set = Quantity::count(1..=most);
    let keys_per_set = cx.inherited(section, "transaction-keys", &of_a_set, keys, most).value;

    KvTransactions {
        sets,
        keys_per_set,
        lock_timeout: cx.value(
            section,
            "lock-timeout",
            &Quantity::time(LOCK_TIMEOUTS),
            LOCK_TIMEOUT,
        ),
        takes_snapshot: cx.value(section, "set-snapshot", &Flag, false),
    }
}
