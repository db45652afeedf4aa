//! Repositories and their commits.

use builds::{BuildError, Repository};

use crate::repository::RecipePlace;

/// Returns an error with its help.
fn told(error: &anyhow::Error) -> String {
    let help = error.downcast_ref::<BuildError>().map(BuildError::help);
    format!("{error}; {}", help.unwrap_or_default())
}

#[test]
fn a_reference_is_a_hash_a_tag_or_a_branch() {
    let place = RecipePlace::new();
    let first = place.repository().resolve("main").unwrap();
    place.git(&["tag", "v1"], "repository");
    let second = place.commit("sec\x1bond", &[]);

    let repository = place.repository();
    let hash = |reference: &str| repository.resolve(reference).unwrap().hash;
    assert_eq!(hash("v1"), first.hash);
    assert_eq!(hash(&first.hash), first.hash);
    assert_eq!(hash(first.short()), first.hash);
    assert_eq!(hash("main"), second.hash);
    assert_eq!(hash("main~1"), first.hash);
    assert_eq!((first.subject.as_str(), second.subject.as_str()), ("level 1", "sec\u{FFFD}ond"));
}

#[test]
fn a_reference_that_git_could_take_for_an_option_is_refused() {
    let place = RecipePlace::new();
    let output = place.path("out");
    let option = format!("--output={}", output.display());
    for reference in [option.as_str(), "-x", "", "main\n--all", "missing", "main:library.c"] {
        let error = place.repository().resolve(reference).unwrap_err();
        let told = told(&error);
        assert!(told.contains(&format!("`{reference}` is not a commit of")), "{told}");
        assert!(told.contains("write a hash, a tag or a branch"), "{told}");
    }
    assert!(!output.exists());
}

#[test]
fn commits_between_two_begin_after_the_good_one_and_follow_first_parents() {
    let place = RecipePlace::new();
    let good = place.commit("good", &[]);
    place.git(&["checkout", "--quiet", "-b", "side"], "repository");
    place.commit("on a branch", &[("side", "")]);
    place.git(&["checkout", "--quiet", "main"], "repository");
    place.commit("one", &[("one", "")]);
    place.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "side"], "repository");
    let bad = place.commit("bad", &[]);

    let commits = place.repository().commits_between(&good, &bad).unwrap();
    let subjects: Vec<&str> = commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects, ["one", "merge", "bad"]);
    assert_eq!(commits[2], bad);
}

#[test]
fn commits_that_do_not_follow_each_other_are_refused_with_their_common_ancestor() {
    let place = RecipePlace::new();
    let base = place.commit("base", &[]);
    let one = place.commit("one", &[("one", "")]);
    place.git(&["checkout", "--quiet", "-b", "other", &base.hash], "repository");
    let other = place.commit("other", &[("other", "")]);

    let repository = place.repository();
    let told = told(&repository.commits_between(&one, &other).unwrap_err());
    assert!(told.contains("is not an ancestor of the bad one"), "{told}");
    assert!(told.contains(&format!("give `{}`", base.short())), "{told}");
    let swapped = repository.commits_between(&one, &base).unwrap_err();
    assert!(swapped.to_string().contains("is not an ancestor"), "{swapped}");
    let same = repository.commits_between(&one, &one).unwrap_err();
    assert!(same.to_string().contains("are the same"), "{same}");
}

#[test]
fn what_is_no_repository_is_refused() {
    let place = RecipePlace::new();
    let told_of = |name: &str| told(&Repository::open(&place.path(name)).unwrap_err());
    assert!(told_of("noted").contains("is not a git repository"));
    assert!(told_of("missing").contains("names a clone on this machine"));
}

#[test]
fn the_repository_of_another_user_is_refused() {
    let place = RecipePlace::new();
    // Only root can give a repository away.
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: not root");
        return;
    }
    for name in ["repository", "repository/.git"] {
        fs_err::os::unix::fs::chown(place.path(name), Some(7002), None).unwrap();
    }
    let told = told(&Repository::open(&place.repository_path()).unwrap_err());
    assert!(told.contains("it belongs to another user"), "{told}");
    assert!(told.contains("safe.directory"), "{told}");
}
