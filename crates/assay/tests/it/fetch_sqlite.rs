//! Versions of SQLite from their source. A script plays npm's client; the compiler is real.

use crate::fetch::Shop;
use crate::place::entries;

/// Plays npm's client: the packages are next to it. Each call is recorded in `calls`. Its own copies
/// go where Assay's limits count them, not to the user's home.
const NPM: &str = r#"#!/bin/sh
here=$(dirname "$0")
mkdir "$npm_config_cache" || exit 1
for package in "$@"; do :; done
echo "$package" >> "$here/calls"
file=$(echo "$package" | tr @ -).tgz
if [ ! -f "$here/$file" ]; then
    echo "npm error code ETARGET"
    echo "npm error notarget No matching version found for $package."
    exit 1
fi
cp "$here/$file" .
"#;

/// Returns a place with a store and npm's client.
fn shop() -> Shop {
    let shop = Shop::new();
    shop.place.write_program("bin/npm", NPM);
    shop
}

/// Offers a package with this source of SQLite.
fn offer_sqlite(shop: &Shop, package_version: &str, source: &str) {
    let path = shop.place.join(&format!("bin/better-sqlite3-{package_version}.tgz"));
    let file = fs_err::File::create(path).unwrap();
    let compressed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let mut archive = tar::Builder::new(compressed);
    for (name, content) in [
        ("package/deps/sqlite3/sqlite3.c", source),
        ("package/deps/sqlite3/sqlite3.h", ""),
        ("package/lib/index.js", "not needed"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
}

#[test]
fn a_version_of_sqlite_is_compiled_from_its_source() {
    let shop = shop();
    offer_sqlite(&shop, "8.1.0", "const char sqlite3_version[] = \"3.40.1\";\n");
    let root = shop.store().join("sqlite-3.40.1/root");
    let library = root.join("lib/libsqlite3.so.0");
    let fetched = format!("> sqlite-3.40.1\tsqlite 3.40.1\t{}", library.display());
    shop.check(&format!("fetch sqlite@3.40 | 0 | compiling | {fetched}"));
    assert_eq!(shop.calls(), ["better-sqlite3@8.1.0"]);
    assert_eq!(entries(&root), [root.join("lib"), root.join("source")]);

    shop.check(
        "fetch sqlite@3.40 | 0 | already in the store
        builds sqlite-3.40.1 | 0 | > compiler | > cc -O2 -shared -fPIC | > -DSQLITE_MAX_VARIABLE_NUMBER=32766
        builds --verify | 0 | > verified",
    );
    assert!(entries(&shop.store().join("downloads/npm/better-sqlite3")).is_empty());
}

#[test]
fn a_source_of_sqlite_that_can_t_be_used_leaves_no_build() {
    let shop = shop();
    shop.check(
        "fetch sqlite@3.40 | 1 | cannot fetch `sqlite@3.40`: `npm` failed | No matching version
        fetch sqlite@3.15 | 2 | version 3.15 of sqlite cannot be fetched | 3.54.1",
    );

    offer_sqlite(&shop, "8.1.0", "this is not C\n");
    shop.check("fetch sqlite@3.40 | 1 | cannot compile SQLite: `cc` failed");
    offer_sqlite(&shop, "8.2.0", "const char sqlite3_version[] = \"3.40.1\";\n");
    shop.check(
        "fetch sqlite@3.41.0 | 1 | the source that was downloaded for 3.41.0 is that of 3.40.1
        builds | 0 | no builds",
    );
}
