//! The targets that a plan's factors make.

use plan::Plan;

const HEAD: &str = "[workload.insert]\n[build.a]\npostgres = 'x'\n[build.b]\npostgres = 'y'\n\
     [config.postgres.base.set]\njit = 'off'\n\
     [config.postgres.vacuum]\nextends = 'base'\nmemory = '1GiB'\n\
     [config.postgres.vacuum-more]\nextends = 'vacuum'\nset.autovacuum_naptime = '1s'\n";

fn parse(text: &str) -> Plan {
    let text = format!("{HEAD}{text}");
    match plan::parse("p.toml", &text, &[]) {
        Ok((plan, _)) => plan,
        Err(errors) => panic!("{}", plan::render(&errors, "p.toml", &text, &[], false)),
    }
}

/// Returns the value of an option of a target's config.
fn option<'p>(plan: &'p Plan, target: usize, name: &str) -> Option<&'p str> {
    let config = &plan.configs[plan.targets[target].config];
    let option = config.set.iter().find(|(other, _)| other == name);
    option.map(|(_, value)| value.as_str())
}

#[test]
fn each_target_has_the_levels_of_the_design() {
    let plan = parse(
        "[design]\nkind = 'full'\n[factors.set]\njit = [false, true]\n[factors.env]\nTZ = ['UTC', 'CET']\n\
         [factors.builds]\nversion = ['a', 'b']\n[factors.configs]\nvacuum = ['base', 'vacuum-more']\n",
    );
    let designed = plan.designed.as_ref().unwrap();
    let names: Vec<&str> = designed.factors.iter().map(|factor| factor.name.as_str()).collect();
    assert_eq!(names, ["version", "vacuum", "jit", "TZ"]);
    assert_eq!(plan.targets.len(), 16);
    assert_eq!(plan.targets[plan.base].name, "a.base");

    for (index, target) in designed.targets.iter().enumerate() {
        let planned = &plan.targets[index];
        assert_eq!(planned.name, target.target);
        let [version, vacuum, jit, tz] = target.levels[..] else {
            panic!("four factors");
        };
        assert_eq!(planned.build, version);
        assert_eq!(option(&plan, index, "autovacuum_naptime"), [None, Some("1s")][vacuum]);
        assert_eq!(option(&plan, index, "jit"), Some(["off", "on"][jit]));
        let config = &plan.configs[planned.config];
        assert_eq!(config.limits.memory_bytes.is_some(), vacuum == 1);
        assert_eq!(config.env, [("TZ".to_owned(), ["UTC", "CET"][tz].to_owned())]);
        let factors: Vec<&str> = config.factors.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(factors, names);
    }
}

#[test]
fn eleven_options_are_screened_by_sixteen_targets_and_their_opposites_are_added() {
    let factors: String = (0..11).map(|index| format!("o{index} = [1, 2]\n")).collect();
    let screened = parse(&format!("[factors.set]\n{factors}"));
    assert_eq!(screened.targets.len(), 16);
    let folded = parse(&format!("[design]\nfold-over = true\n[factors.set]\n{factors}"));
    assert_eq!(folded.targets.len(), 32);

    // The targets of the screening keep their names and their configs.
    assert_eq!(folded.targets[..16], screened.targets[..]);
    let added = &folded.designed.as_ref().unwrap().targets[16..];
    assert!(added.iter().all(|target| target.is_folded));
}

#[test]
fn levels_that_exclude_each_other_are_in_no_target() {
    let plan = parse(
        "[design]\ntargets = 8\nexclude = [{ jit = true, fsync = false }]\n\
         [factors.set]\njit = [false, true]\nfsync = [true, false]\nwork_mem = ['4MB', '16MB', '64MB']\n",
    );
    assert_eq!(plan.targets.len(), 8);
    for index in 0..8 {
        let both = (option(&plan, index, "jit"), option(&plan, index, "fsync"));
        assert_ne!(both, (Some("on"), Some("off")));
    }
}
