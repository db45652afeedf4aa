use std::os::unix::fs::MetadataExt as _;

use super::*;

#[test]
fn others_can_not_open_the_lock_not_even_one_of_an_earlier_version() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join(".lock");
    fs_err::write(&lock, "").unwrap();
    fs_err::set_permissions(&lock, PermissionsExt::from_mode(0o644)).unwrap();
    let store = Store { root: folder.path().to_owned() };
    let _locked = store.lock(&|_| ()).unwrap();
    assert_eq!(lock.metadata().unwrap().mode() & 0o777, LOCK_MODE);
}

fn put(store: &Store, name: &str, engine: &str, product: &str, version: &str, spec: &str) {
    let folder = store.root.join(name);
    fs_err::create_dir_all(&folder).unwrap();
    Manifest {
        format: crate::manifest::FORMAT,
        name: name.into(),
        engine: engine.into(),
        product: product.into(),
        version: version.into(),
        version_text: version.into(),
        spec: spec.into(),
        fetched_unix_s: 0,
        path: "root".into(),
        compiled: None,
        made: None,
        artifacts: Vec::new(),
        programs: Vec::new(),
        files_sha256: None,
    }
    .write(&folder)
    .unwrap();
}

#[test]
fn other_users_can_reach_the_builds_of_root() {
    let home = |name: &str| (name == "HOME").then(|| OsString::from("/h"));
    let root = |is_root| Store::from_environment(is_root, &home).unwrap().root;
    assert_eq!(root(true), Path::new("/var/lib/assay/builds"));
    assert_eq!(root(false), Path::new("/h/.local/share/assay/builds"));
    let builds = |name: &str| (name == "ASSAY_BUILDS").then(|| OsString::from("/b"));
    let store = Store::from_environment(true, &builds).unwrap();
    assert_eq!(store.root, Path::new("/b"));
}

#[test]
fn all_users_can_enter_the_folders_of_a_store() {
    let directory = tempfile::tempdir().unwrap();
    fs_err::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let top = directory.path().join("assay");
    let root = top.join("builds");
    let _lock = Store { root: root.clone() }.lock(&|_| {}).unwrap();
    for folder in [top, root] {
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o755);
    }
    // A folder that existed keeps its mode.
    assert_eq!(directory.path().metadata().unwrap().mode() & 0o777, 0o700);
}

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store { root: directory.path().to_path_buf() };
    put(&store, "pg", "postgres", "postgres", "17.2", "postgres@17.2");
    put(&store, "new", "postgres", "postgres", "17.10", "postgres@17");
    put(&store, "maria", "mysql", "mariadb", "11.4.5", "mariadb@11.4.5");
    put(&store, "my", "mysql", "mysql", "11.4.5", "dir:/x");
    (directory, store)
}

fn name_of(store: &Store, engine: &str, text: &str) -> Result<Option<String>, String> {
    let build = store.find(engine, text).map_err(|error| error.to_string())?;
    Ok(build.map(|build| build.manifest.name))
}

#[test]
fn a_build_is_found_by_name_spec_and_version() {
    let (_directory, store) = store();
    let find = |engine, text| name_of(&store, engine, text).unwrap();
    assert_eq!(find("postgres", "pg").as_deref(), Some("pg"));
    assert_eq!(find("postgres", "postgres@17.2").as_deref(), Some("pg"));
    assert_eq!(find("postgres", "17.2").as_deref(), Some("pg"));
    assert_eq!(find("postgres", "17").as_deref(), Some("new"));
    assert_eq!(find("mysql", "mariadb@11").as_deref(), Some("maria"));
    assert_eq!(find("postgres", "17.1"), None);
    assert_eq!(find("postgres", "mariadb@11"), None);
    assert_eq!(find("postgres", "/opt/pg"), None);
    assert_eq!(find("postgres", ""), None);
}

#[test]
fn an_ambiguous_text_is_an_error_that_names_the_builds() {
    let (_directory, store) = store();
    let error = name_of(&store, "mysql", "11.4").unwrap_err();
    assert!(error.contains("`maria`, `my`"), "{error}");
    let error = name_of(&store, "mysql", "pg").unwrap_err();
    assert!(error.contains("is for postgres"), "{error}");
}

#[test]
fn a_folder_without_a_manifest_is_not_removed() {
    let (_directory, store) = store();
    let lock = store.lock(&|_| {}).unwrap();
    fs_err::create_dir(store.root.join("mine")).unwrap();
    fs_err::write(store.root.join("mine/file"), "x").unwrap();
    let error = store.remove(&lock, "mine").unwrap_err();
    assert!(error.to_string().contains("is not a build"), "{error}");
    assert!(store.root.join("mine/file").exists());
    store.remove(&lock, "pg").unwrap();
    assert!(store.by_name("pg").unwrap().is_none());
    assert!(store.remove(&lock, "../mine").is_err());
}

#[test]
fn the_leftovers_of_an_interrupted_fetch_are_removed() {
    let (_directory, store) = store();
    let lock = store.lock(&|_| {}).unwrap();
    let leftover = store.begin(&lock).unwrap();
    drop(lock);
    let lock = store.lock(&|_| {}).unwrap();
    assert!(!leftover.exists());
    store.begin(&lock).unwrap();
}
