//! Sorted files that a session writes outside of the database, and that the database takes over.

#![expect(unsafe_code, reason = "this calls the library's functions")]

use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use super::api::{Api, Opaque, Owned};
use super::database::{Database, check, text};
use crate::error::Error;

/// The bytes of keys and values in a file: the library's own default for its files
/// (`target_file_size_base`).
const FILE_BYTES: usize = 64 << 20;

/// The files of one ingestion.
#[derive(Debug)]
pub(super) struct SortedFiles {
    api: &'static Api,
    directory: PathBuf,
    environment: Owned,
    /// The file that is being written, and the bytes of its keys and values.
    writer: Option<Owned>,
    bytes: usize,
    /// The paths of all files.
    paths: Vec<CString>,
}

impl SortedFiles {
    /// Returns no files, in a directory beside that of the database. It is on the same file system, so
    /// that the database can move the files.
    pub(super) fn new(database: &Database) -> Self {
        let api = database.api;
        // SAFETY: no arguments; what is returned is ours, and destroyed by the function of its kind.
        let environment = unsafe { Owned::new((api.envoptions_create)(), api.envoptions_destroy) };
        Self {
            api,
            directory: database.directory.with_extension("ingested"),
            environment,
            writer: None,
            bytes: 0,
            paths: Vec::new(),
        }
    }

    /// Writes an entry whose key is larger than those before.
    #[inline]
    pub(super) fn write(
        &mut self,
        database: &Database,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        if self.writer.is_none() || self.bytes >= FILE_BYTES {
            self.finish()?;
            self.begin(database)?;
        }
        let Some(writer) = &self.writer else {
            return Err(Error::other("no file is open"));
        };

        let (key_start, value_start) = (key.as_ptr().cast::<c_char>(), value.as_ptr().cast());
        let mut failure = null_mut();
        // SAFETY: the writer lives; key and value are borrowed for the call.
        unsafe {
            (self.api.sstfilewriter_put)(
                writer.raw,
                key_start,
                key.len(),
                value_start,
                value.len(),
                &mut failure,
            );
        }
        self.bytes += key.len() + value.len();
        check(self.api, failure)
    }

    /// Begins a file with the options of the database.
    fn begin(&mut self, database: &Database) -> Result<(), Error> {
        fs_err::create_dir_all(&self.directory).map_err(|error| Error::other(error.to_string()))?;
        let name = format!("{:06}.sst", self.paths.len());
        let path = path_text(&self.directory.join(name))?;

        let mut failure = null_mut();
        // SAFETY: both options live, and the writer copies them; the path ends with a zero.
        let writer = unsafe {
            let raw: Opaque =
                (self.api.sstfilewriter_create)(self.environment.raw, database.options_raw());
            let writer = Owned::new(raw, self.api.sstfilewriter_destroy);
            (self.api.sstfilewriter_open)(writer.raw, path.as_ptr(), &mut failure);
            writer
        };
        check(self.api, failure)?;

        self.paths.push(path);
        self.writer = Some(writer);
        self.bytes = 0;
        Ok(())
    }

    /// Ends the file that is being written, if there is one.
    fn finish(&mut self) -> Result<(), Error> {
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        let mut failure = null_mut();
        // SAFETY: the writer lives.
        unsafe { (self.api.sstfilewriter_finish)(writer.raw, &mut failure) };
        check(self.api, failure)
    }

    /// Makes all files part of the database, which moves them into its directory.
    pub(super) fn ingest(&mut self, database: &Database) -> Result<(), Error> {
        self.finish()?;
        if self.paths.is_empty() {
            return Ok(());
        }

        let paths: Vec<*const c_char> = self.paths.iter().map(|path| path.as_ptr()).collect();
        let mut failure = null_mut();
        // SAFETY: the database is open; there are as many paths as is said, each ends with a zero; the
        // options are made here and given back.
        unsafe {
            let options = Owned::new(
                (self.api.ingestexternalfileoptions_create)(),
                self.api.ingestexternalfileoptions_destroy,
            );
            (self.api.ingestexternalfileoptions_set_move_files)(options.raw, 1);
            (self.api.ingest_external_file)(
                database.raw,
                paths.as_ptr(),
                paths.len(),
                options.raw,
                &mut failure,
            );
        }
        check(self.api, failure)?;

        self.paths.clear();
        // The database has moved the files, so the directory is empty.
        fs_err::remove_dir(&self.directory).map_err(|error| Error::other(error.to_string()))
    }
}

fn path_text(path: &Path) -> Result<CString, Error> {
    let path = path.to_str().ok_or_else(|| Error::other("the data directory is not UTF-8"))?;
    text(path)
}
