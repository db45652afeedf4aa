//! Factors of targets whose settings are known.

use super::*;
use crate::settings::ProfileSetting;

/// Returns a target with the settings of its config, all of them declared.
fn profile(target: &str, build: &str, settings: &[(&str, &str)]) -> Profile {
    let setting = |(name, value): &(&str, &str)| {
        let setting = ProfileSetting {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
            canonical: value.to_lowercase(),
        };
        ((*name).to_owned(), setting)
    };
    Profile {
        target: target.to_owned(),
        engine: "mysql".to_owned(),
        build: build.to_owned(),
        is_reported: true,
        settings: settings.iter().map(setting).collect::<BTreeMap<_, _>>(),
        declared: settings.iter().map(|(name, _)| (*name).to_owned()).collect(),
        factors: Vec::new(),
    }
}

/// Returns the targets of a published comparison of durability: `sync` is of the binary log as
/// well, where there is one.
fn durability() -> Vec<Profile> {
    let mut all = Vec::new();
    for log in ["0", "1"] {
        for sync in ["0", "1"] {
            for doublewrite in ["OFF", "ON"] {
                let both = if log == sync { sync } else { "0" };
                let settings = [
                    ("log_bin", log),
                    ("flush", sync),
                    ("sync_binlog", both),
                    ("doublewrite", doublewrite),
                    ("cache", "1G"),
                ];
                let name = format!("m.bl{log}_sync{sync}_dw{doublewrite}");
                all.push(profile(&name, "m", &settings));
            }
        }
    }
    all
}

fn names(found: &Factors) -> Vec<&str> {
    found.factors.iter().map(|it| it.name.as_str()).collect()
}

#[test]
fn settings_in_all_combinations_are_factors_and_derived_settings_are_not() {
    let found = Factors::find(&durability(), &["m.bl1_sync1_dwON".to_owned()]);
    assert_eq!(names(&found), ["log_bin", "flush", "doublewrite"]);
    assert_eq!(found.determined[0].0, "sync_binlog");
    assert!(found.alike.is_empty());
    let flush = &found.factors[1];
    assert_eq!(flush.levels, ["1", "0"]);
    assert_eq!(flush.settings_with(1), ["sync_binlog"], "in some combinations");
    assert_eq!(flush.combinations.len(), 4);
    let first = &flush.combinations[0];
    assert_eq!(first.others, "log_bin=1, doublewrite=ON");
    let target = |name: &str| Some(name.to_owned());
    let expected = [target("m.bl1_sync1_dwON"), target("m.bl1_sync0_dwON")];
    assert_eq!(first.targets, expected);
    assert!(flush.missing().is_empty());
    assert_eq!(flush.change(1), "flush: 1 -> 0");
}

#[test]
fn a_plan_can_name_factors_that_no_setting_shows_also_of_builds() {
    let target = |build: &str, compiler: &str, disk: &str| {
        let mut profile = profile(&format!("{build}.{disk}"), build, &[("cache", "1G")]);
        let factors = [("compiler", compiler), ("disk", disk)];
        let factors = factors.map(|(name, value)| (name.to_owned(), value.to_owned()));
        profile.factors = factors.to_vec();
        profile
    };
    let targets = ["gcc", "clang"].map(|compiler| {
        ["ssd", "ram"].map(|disk| target(&format!("pg-{compiler}"), compiler, disk))
    });
    let found = Factors::find(&targets.concat(), &[]);
    assert_eq!(names(&found), ["compiler", "disk"]);
    assert!(found.factors[0].is_named("build") && found.alike.is_empty());
    assert_eq!(found.factors[0].settings_with(1), [""; 0], "its name stands for the build");
    assert_eq!(found.factors[1].change(1), "disk: ssd -> ram");
    assert_eq!(found.factors[1].combinations[1].others, "compiler=clang");
    // A target without it has a value of its own.
    let mut targets = targets.concat();
    targets[3].factors.pop();
    let found = Factors::find(&targets, &[]);
    assert_eq!(found.factors[1].levels, ["ssd", "ram", NOT_SET]);
}

#[test]
fn combinations_that_a_factor_lacks_are_named() {
    let mut targets = durability();
    targets.retain(|it| it.target != "m.bl0_sync1_dwON");
    let found = Factors::find(&targets, &[]);
    assert_eq!(names(&found), ["log_bin", "flush", "doublewrite"]);
    let missing = found.factors[1].missing();
    assert_eq!(missing, ["flush=1, log_bin=0, doublewrite=ON"]);
    assert_eq!(found.factors[1].one_at_a_time(), None, "others have several levels");
}

/// The usual form of tuning: a base, and configs that change one option each.
#[test]
fn targets_that_differ_from_the_base_in_one_factor_are_known_next_to_its_values() {
    let of = |name: &str, sync: &str, scale: &str| {
        profile(&format!("pg.{name}"), "pg", &[("sync", sync), ("scale", scale)])
    };
    let targets = [
        of("a1", "on", "0.1"),
        of("base", "on", "0.2"),
        of("a3", "off", "0.2"),
        of("a16", "on", "0.05"),
    ];
    let found = Factors::find(&targets, &["pg.base".to_owned()]);
    assert_eq!(names(&found), ["sync", "scale"]);

    let alone: Vec<Factor> = found.factors.iter().filter_map(Factor::one_at_a_time).collect();
    let target = |name: &str| Some(format!("pg.{name}"));
    let [sync, scale] = alone.as_slice() else { panic!("{alone:?}") };
    assert_eq!(sync.combinations[0].targets, [target("base"), target("a3")]);
    assert_eq!(scale.levels, ["0.2", "0.1", "0.05"]);
    let expected = [target("base"), target("a1"), target("a16")];
    assert_eq!(scale.combinations[0].targets, expected);
    assert!(alone.iter().all(|factor| factor.combinations.len() == 1 && factor.is_full()));
}

#[test]
fn settings_that_always_change_together_are_one_factor_and_builds_are_one() {
    let both = |target: &str, build: &str, value: &str| {
        profile(target, build, &[("a", value), ("b", value)])
    };
    let targets = [
        both("x.off", "x", "off"),
        both("x.on", "x", "ON"),
        both("y.off", "y", "off"),
        both("y.on", "y", "on"),
    ];
    let found = Factors::find(&targets, &[]);
    assert_eq!(names(&found), ["build", "a"]);
    let setting = &found.factors[1];
    assert_eq!((&*setting.levels[1], &*setting.with[0]), ("ON", "b"));
    assert_eq!(setting.settings_with(1), ["b=ON"]);
    assert!(setting.is_named("b") && !setting.is_named("build"));
    assert_eq!(setting.combinations[1].others, "build=y");
}

#[test]
fn a_target_that_never_came_up_has_what_others_of_its_build_have_by_default() {
    let mut on = profile("x.on", "x", &[("a", "on"), ("b", "1")]);
    on.declared = vec!["b".to_owned()];
    let mut off = profile("x.off", "x", &[("a", "off"), ("b", "2")]);
    off.declared = vec!["a".to_owned(), "b".to_owned()];
    let mut dead = profile("x.dead", "x", &[("b", "2")]);
    dead.is_reported = false;
    let mut off_too = profile("x.off-too", "x", &[("a", "off"), ("b", "1")]);
    off_too.declared = off.declared.clone();
    let found = Factors::find(&[on, off, dead, off_too], &[]);
    assert_eq!(names(&found), ["b", "a"]);
    assert!(found.factors.iter().all(|it| it.missing().is_empty()));
}

#[test]
fn targets_without_a_difference_are_listed_by_engine() {
    let mut other = profile("p.a", "p", &[("a", "2")]);
    other.engine = "postgres".to_owned();
    let twins = ["x.a", "x.a-again"].map(|name| profile(name, "x", &[("a", "1")]));
    let [a, again] = twins;
    let found = Factors::find(&[a, again, other], &[]);
    assert!(found.factors.is_empty());
    let pair = ["x.a", "x.a-again"].map(str::to_owned);
    assert_eq!(found.alike, [pair]);
}

#[test]
fn options_of_rocksdb_are_shown_without_their_section_and_path() {
    let named = |engine: &str, name: &str| Factor {
        engine: engine.into(),
        name: name.into(),
        ..Factor::default()
    };
    let block_size = named("rocksdb", "block_based_table_factory.block_size");
    assert_eq!(block_size.label(), "block_size");
    assert_eq!(named("rocksdb", "[CFOptions] compression").label(), "compression");
    // The prefix of an extension of PostgreSQL says whose option it is.
    assert_eq!(named("postgres", "auto_explain.log_timing").label(), "auto_explain.log_timing");
}

#[test]
fn a_factor_is_known_by_the_names_that_the_plan_gives_its_options() {
    let same =
        SameSetting { name: "[CFOptions] compression".to_owned(), levels: vec![String::new(); 2] };
    let factor = Factor {
        engine: "rocksdb".to_owned(),
        name: "[CFOptions] write_buffer_size".to_owned(),
        same: vec![same],
        ..Factor::default()
    };
    assert!(factor.has_short_name("write_buffer_size") && factor.has_short_name("compression"));
    assert!(!factor.has_short_name("buffer_size") && !factor.is_named("write_buffer_size"));
    assert!(factor.is_named("[CFOptions] compression"));

    let name = "[TableOptions/BlockBasedTable default] block_based_table_factory.block_size";
    let nested = Factor { name: name.to_owned(), same: Vec::new(), ..factor };
    assert!(nested.has_short_name("block_size"));
    assert!(nested.has_short_name("block_based_table_factory.block_size"));
}
