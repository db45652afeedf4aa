//! Recipes that make builds from commits.

use std::cell::RefCell;

use builds::{BuildError, CommitFailure, Interrupted, Patch, Repository};

use crate::repository::{RecipePlace, library};

/// Returns the failure of a commit.
fn failure(result: anyhow::Result<builds::Build>) -> CommitFailure {
    result.unwrap_err().downcast().expect("the commit is to blame")
}

#[test]
fn a_commit_is_built_once_and_its_build_says_how() {
    let place = RecipePlace::new();
    place.git(&["tag", "v9"], "repository");
    let commit = place.commit("level 2", &[("library.c", &library(2))]);
    let mut recipe = place.recipe();
    let noted = place.path("noted/runs");
    recipe.make = format!("echo ran >> {}; sh build.sh", noted.display());

    assert!(recipe.find(&place.store, &commit).unwrap().is_none());
    let lines = RefCell::new(Vec::new());
    let progress = |line: &str| lines.borrow_mut().push(line.to_owned());
    let build = recipe.build(&place.store, &commit, &progress, &|| false).unwrap();
    let lines = lines.into_inner();
    assert!(lines[1].starts_with("running its recipe"), "{lines:?}");

    let again = place.build(&recipe, &commit).unwrap();
    assert_eq!(again.manifest, build.manifest);
    assert_eq!(fs_err::read_to_string(&noted).unwrap(), "ran\n");
    assert_eq!(build.path(), build.folder.join("root/librocksdb.so.9.9.3"));
    build.verify().unwrap();

    let made = build.manifest.made.as_ref().unwrap();
    assert_eq!(build.manifest.version, "9.9.3");
    assert_eq!(made.commit, commit);
    assert_eq!(made.described, format!("v9-1-g{}", commit.short()));
    assert_eq!(made.make, recipe.make);
    assert!(made.compilers["cc"].contains("cc"), "{:?}", made.compilers);
    assert!(recipe.last_duration(&place.store).unwrap().is_some());
    assert_eq!(place.stored(), [build.manifest.name.as_str()]);
    // The plan `rocksdb = "9.9.3"` means the release.
    assert!(place.store.find("rocksdb", "9.9.3").unwrap().is_none());
}

#[test]
fn each_commit_recipe_and_patch_has_its_own_build() {
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    let patch = place.path("fix.diff");
    fs_err::write(place.repository_path().join("library.c"), library(3)).unwrap();
    fs_err::write(&patch, place.git(&["diff"], "repository") + "\n").unwrap();
    let next = place.commit("level 3", &[]);

    let recipe = place.recipe();
    let mut patched = place.recipe();
    patched.patch = Some(Patch::read(&patch).unwrap());
    let mut other = place.recipe();
    other.make = "CFLAGS=-O1 sh build.sh".into();

    let build = place.build(&recipe, &commit).unwrap();
    let patched_build = place.build(&patched, &commit).unwrap();
    let others = [
        &patched_build,
        &place.build(&other, &commit).unwrap(),
        &place.build(&recipe, &next).unwrap(),
    ];
    assert!(others.iter().all(|other| other.manifest.name != build.manifest.name));
    assert_eq!(place.stored().len(), 4);
    let made = patched_build.manifest.made.as_ref().unwrap();
    assert_eq!(made.patch.as_ref().unwrap().name, "fix.diff");
    assert!(patched_build.manifest.spec.ends_with(" + fix.diff"));
    let hash_of = |build: &builds::Build| build.manifest.programs[0].sha256.clone();
    assert_ne!(hash_of(others[0]), hash_of(&build));

    // On the next commit, the change is there already.
    let failed = failure(place.build(&patched, &next));
    assert!(failed.why.starts_with("the patch `fix.diff` does not apply"), "{}", failed.why);
}

#[test]
fn a_commit_that_does_not_build_is_told_with_the_end_of_its_log() {
    let place = RecipePlace::new();
    let noise = "for i in $(seq 100); do echo line $i; done\n";
    let script = format!("{noise}cc -shared -o librocksdb.so library.c\n");
    let commit = place.commit("broken", &[("build.sh", &script), ("library.c", "not C;\n")]);

    let error = place.build(&place.recipe(), &commit).unwrap_err();
    let failed: &CommitFailure = error.downcast_ref().unwrap();
    assert_eq!(failed.commit, commit);
    assert!(
        error.to_string().contains("does not build: its recipe failed with exit status: 1"),
        "{error}"
    );
    assert_eq!(failed.log_tail.len(), 20);
    assert!(failed.log_tail.iter().any(|line| line.contains("error")), "{:?}", failed.log_tail);
    assert!(failed.help().contains(&failed.log.display().to_string()));
    let log = fs_err::read_to_string(&failed.log).unwrap();
    assert!(log.contains("line 1\n") && log.contains(&commit.hash), "{log}");
    assert!(place.stored().is_empty());
}

#[test]
fn a_recipe_that_gives_something_else_is_told() {
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    for (make, gives, engine, why) in [
        ("true", "librocksdb.so", "rocksdb", "No such file"),
        (
            "echo text > librocksdb.so",
            "librocksdb.so",
            "rocksdb",
            "not a build of a supported engine",
        ),
        ("sh build.sh", "librocksdb.so", "postgres", "is a build of rocksdb, not postgres"),
        ("ln -s /etc/passwd librocksdb.so", "librocksdb.so", "rocksdb", "leads out of the source"),
        ("mkdir -p x/lib; ln -s /etc x/lib/etc", "x", "postgres", "leads out of it"),
        ("true", "../../x", "rocksdb", "leads out of the source"),
    ] {
        let mut recipe = place.recipe();
        recipe.make = make.into();
        recipe.gives = gives.into();
        recipe.engine = engine.into();
        let failed = failure(place.build(&recipe, &commit));
        assert!(failed.why.contains(why), "{make}: {}", failed.why);
    }
    assert!(place.stored().is_empty());
}

#[test]
fn an_interrupted_build_leaves_nothing() {
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    let begun = place.path("noted/begun");
    let mut recipe = place.recipe();
    recipe.make = format!("sh build.sh; touch {}; exec tail -f /dev/null", begun.display());
    let built = recipe.build(&place.store, &commit, &|_| {}, &|| begun.exists());
    assert!(built.unwrap_err().is::<Interrupted>());
    assert!(place.stored().is_empty());
    assert!(recipe.find(&place.store, &commit).unwrap().is_none());
}

#[test]
fn folders_that_a_recipe_made_read_only_are_removed() {
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    let mut recipe = place.recipe();
    recipe.make = "mkdir -p a/b; touch a/b/c; chmod 500 a/b a; sh build.sh".into();
    place.build(&recipe, &commit).unwrap();
    recipe.make = "mkdir -p a/b; touch a/b/c; chmod 500 a/b a; exit 1".into();
    place.build(&recipe, &commit).unwrap_err();
    assert_eq!(place.stored().len(), 1);
}

#[test]
fn hooks_and_filters_of_a_repository_are_not_run() {
    let place = RecipePlace::new();
    let noted = place.path("noted/executed");
    let program = format!("touch {}; cat", noted.display());
    let hooks = place.repository_path().join(".git/hooks");
    fs_err::create_dir_all(&hooks).unwrap();
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        fs_err::write(hooks.join(hook), format!("#!/bin/sh\n{program}\n")).unwrap();
        crate::repository::set_mode(&hooks.join(hook), 0o755);
    }
    let commit = place.commit(
        "filters",
        &[
            (".gitattributes", "*.c filter=evil\n"),
            (".gitconfig", &format!("[filter \"evil\"]\n\tsmudge = {program}\n")),
        ],
    );
    // What the test itself ran.
    let _ = fs_err::remove_file(&noted);
    for (key, value) in [
        ("filter.evil.smudge", program.as_str()),
        ("filter.evil.process", &program),
        ("core.fsmonitor", &program),
    ] {
        place.git(&["config", key, value], "repository");
    }
    let patch = place.path("noted/none.diff");
    fs_err::write(&patch, "--- /dev/null\n+++ b/new.c\n@@ -0,0 +1 @@\n+int new;\n").unwrap();

    let mut recipe = place.recipe();
    recipe.patch = Some(Patch::read(&patch).unwrap());
    place.build(&recipe, &commit).unwrap();
    let base = place.repository().resolve("main~1").unwrap();
    place.repository().commits_between(&base, &commit).unwrap();
    assert!(!noted.exists());
}

#[test]
fn the_repository_is_only_read() {
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    let mut recipe = place.recipe();
    recipe.make = "git rev-parse HEAD && git gc --quiet --prune=now; sh build.sh".into();
    let files = || {
        let mut names = place.git(&["count-objects", "-v"], "repository");
        names += &place.git(&["status", "--porcelain"], "repository");
        names + &place.git(&["worktree", "list"], "repository")
    };
    let before = files();
    let build = place.build(&recipe, &commit).unwrap();
    assert_eq!(files(), before);
    // The source is a repository itself, which some recipes ask for the commit.
    let log = fs_err::read_to_string(build.folder.join("build.log")).unwrap();
    assert!(log.contains(&format!("\n{}\n", commit.hash)), "{log}");
}

#[test]
fn a_bare_repository_a_worktree_and_a_folder_in_one_are_read_too() {
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    place.git(&["clone", "--quiet", "--bare", "repository", "bare"], "");
    place.git(&["worktree", "add", "--quiet", "--detach", "../worktree"], "repository");
    fs_err::create_dir(place.path("worktree/inner")).unwrap();
    place.git(&["clone", "--quiet", "--shared", "repository", "borrower"], "");
    for (index, name) in ["bare", "worktree", "worktree/inner", "borrower"].iter().enumerate() {
        let mut recipe = place.recipe();
        recipe.repository = Repository::open(&place.path(name)).unwrap();
        recipe.make = format!("sh build.sh # {index}");
        assert_eq!(recipe.repository.resolve("main").unwrap(), commit);
        place.build(&recipe, &commit).unwrap();
    }
    assert_eq!(place.stored().len(), 4);
}

#[test]
fn a_partial_clone_is_told_and_gets_nothing_from_its_origin() {
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    place.git(&["config", "uploadpack.allowFilter", "true"], "repository");
    let origin = format!("file://{}", place.repository_path().display());
    let filter = ["clone", "--quiet", "--no-checkout", "--filter=blob:none"];
    place.git(&[&filter[..], &[&origin, "partial"]].concat(), "");

    let objects = || place.git(&["count-objects", "-v"], "partial");
    let before = objects();
    let mut recipe = place.recipe();
    recipe.repository = Repository::open(&place.path("partial")).unwrap();
    let error = place.build(&recipe, &commit).unwrap_err();
    let told: &BuildError = error.downcast_ref().expect("the commit is not to blame");
    assert!(told.to_string().starts_with("cannot check out"), "{told}");
    assert!(told.help().contains("may be a partial clone"), "{}", told.help());
    assert_eq!(objects(), before);
}

#[test]
fn submodules_come_from_the_clone_and_missing_ones_stay_empty() {
    let place = RecipePlace::new();
    let local = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    for name in ["deep", "inner"] {
        place.git(&["init", "--quiet", "--initial-branch=main", name], "");
        fs_err::write(place.path(name).join("file.c"), "int inner;\n").unwrap();
        if name == "inner" {
            place.git(&[&local[..], &["add", "../deep", "deep"]].concat(), name);
        }
        place.git(&["add", "--all"], name);
        place.git(&["commit", "--quiet", "-m", name], name);
    }
    for name in ["present", "absent"] {
        place.git(&[&local[..], &["add", "../inner", name]].concat(), "repository");
    }
    place.git(&[&local[..], &["update", "--init", "--recursive"]].concat(), "repository");
    let commit = place.commit("with submodules", &[]);
    fs_err::remove_dir_all(place.repository_path().join(".git/modules/absent")).unwrap();

    let mut recipe = place.recipe();
    recipe.make = "test -f present/deep/file.c && test -z \"$(ls absent)\" && sh build.sh".into();
    let build = place.build(&recipe, &commit).unwrap();
    let log = fs_err::read_to_string(build.folder.join("build.log")).unwrap();
    assert!(log.contains("the clone lacks the submodule `absent`"), "{log}");
}

#[test]
fn two_processes_that_build_the_same_commit_build_it_once() {
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    let noted = place.path("noted/runs");
    let mut recipe = place.recipe();
    recipe.make = format!("echo ran >> {}; sh build.sh", noted.display());
    let names = std::thread::scope(|threads| {
        let build = || place.build(&recipe, &commit).unwrap().manifest.name;
        let both = [threads.spawn(build), threads.spawn(build)];
        both.map(|thread| thread.join().unwrap())
    });
    assert_eq!(names[0], names[1]);
    assert_eq!(fs_err::read_to_string(&noted).unwrap(), "ran\n");
}

#[test]
fn root_lets_another_user_run_the_recipe() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: not root");
        return;
    }
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    let mut recipe = place.recipe();
    recipe.make = "id -u; touch \"$HOME/x\" && sh build.sh".into();
    let build = place.build(&recipe, &commit).unwrap();
    let log = fs_err::read_to_string(build.folder.join("build.log")).unwrap();
    assert!(!log.contains("\n0\n"), "{log}");
    let owner = |path: &std::path::Path| {
        use std::os::unix::fs::MetadataExt;
        fs_err::symlink_metadata(path).unwrap().uid()
    };
    for path in [build.folder.clone(), build.folder.join("root"), build.path()] {
        assert_eq!(owner(&path), 0, "{}", path.display());
    }
}

#[test]
fn a_store_that_the_other_user_cannot_enter_is_told() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: not root");
        return;
    }
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    place.store.lock(&|_| {}).unwrap();
    crate::repository::set_mode(place.store.root(), 0o700);
    let error = place.build(&place.recipe(), &commit).unwrap_err();
    assert!(error.is::<BuildError>() && error.to_string().contains("cannot enter"), "{error}");
}

#[test]
fn a_full_disk_or_a_killed_recipe_is_not_the_fault_of_the_commit() {
    let place = RecipePlace::new();
    let commit = place.repository().resolve("main").unwrap();
    for (make, what) in [
        ("echo 'cc1: No space left on device'; exit 1", "the disk is full"),
        ("kill -KILL $$", "was killed"),
    ] {
        let mut recipe = place.recipe();
        recipe.make = make.into();
        let error = place.build(&recipe, &commit).unwrap_err();
        assert!(error.is::<BuildError>(), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}
