//! Values that several threads share.

/// A value on a cache line of its own.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct CachePadded<T>(pub(crate) T);
