//! The vocabulary that the live half and the reading half share: what a recorded counter, setting, metric or cell is
//! called and means. No dependencies and no I/O.
