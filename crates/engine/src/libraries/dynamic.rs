//! Opens the shared libraries of engines.

#![expect(unsafe_code, reason = "opening a library runs its constructors")]

use std::error::Error as _;
use std::ffi::c_void;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// Opens a library. Its names are not visible to other libraries.
///
/// # Errors
/// The message of the dynamic loader, which names what is missing.
pub(crate) fn open(path: &Path) -> Result<Library, String> {
    // SAFETY: the library's constructors run: it is the user's own choice to measure it, and a
    // process of its own is what it is loaded into.
    let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    opened.map_err(|error| match error.source() {
        Some(reason) => format!("the library cannot be loaded: {reason}"),
        None => error.to_string(),
    })
}

/// Opens a library that has the `required` functions of a product's C API.
///
/// # Errors
/// The message of the dynamic loader, or the missing functions.
pub(crate) fn open_with(path: &Path, product: &str, required: &[&str]) -> Result<Library, String> {
    let library = open(path)?;
    let has = |name: &str| {
        // SAFETY: this only checks that the name exists; nothing is called or read.
        unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_ok()
    };

    let missing: Vec<&str> = required.iter().copied().filter(|name| !has(name)).collect();

    if missing.is_empty() {
        Ok(library)
    } else if missing.len() == required.len() {
        Err(format!("the library has no function of {product}'s C API, so it is not {product}"))
    } else {
        let missing = missing.join(", ");
        Err(format!("the library lacks functions of {product}'s C API: {missing}"))
    }
}
