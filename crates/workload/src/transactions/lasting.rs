//! Names from scripts that last as long as the program. Records and tables of engines have names that
//! are known when Assay is compiled; those of scripts are kept once each, so their number is that of
//! the names in plans.

use std::sync::{Mutex, PoisonError};

use crate::{OpKind, OpRole};

static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
static KINDS: Mutex<Vec<&'static [OpKind]>> = Mutex::new(Vec::new());

/// Returns a name that lasts.
pub(super) fn name(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.iter().find(|known| **known == name) {
        return known;
    }

    let lasting: &'static str = Box::leak(Box::<str>::from(name));
    names.push(lasting);
    lasting
}

/// Returns the kinds of operation of a test, one for each of its transactions.
pub(super) fn kinds<'n>(transactions: impl Iterator<Item = &'n str>) -> &'static [OpKind] {
    let wanted: Vec<OpKind> = transactions
        .map(|transaction| OpKind::new(name(transaction), OpRole::Transaction))
        .collect();

    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kinds.iter().find(|known| **known == wanted) {
        return known;
    }

    let lasting: &'static [OpKind] = Box::leak(wanted.into_boxed_slice());
    kinds.push(lasting);
    lasting
}
