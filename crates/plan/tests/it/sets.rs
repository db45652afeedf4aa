//! `--set key=value` over a plan file.

use plan::{Place, Plan, Workload};

const FILE: &str = r#"
clients = [4]
base = "pg.a16"

[workload.insert]
initial-rows = "20M"
step."l.i1".rows-per-commit = 25

[build.pg]
postgres = "/opt/pg"

[config.postgres.base]
set = { work_mem = "4MB" }
[config.postgres.a16]
extends = "base"

[[target]]
builds = ["pg"]
configs = ["base", "a16"]
"#;

fn with(sets: &[&str]) -> Plan {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    match plan::parse("p.toml", FILE, &sets) {
        Ok((plan, _)) => plan,
        Err(errors) => panic!("{}", plan::render(&errors, "p.toml", FILE, &sets, false)),
    }
}

fn refused(sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let errors = plan::parse("p.toml", FILE, &sets).unwrap_err();
    assert!(
        errors
            .iter()
            .any(|error| matches!(error.place, Place::Set { .. })),
        "{errors:?}"
    );
    plan::render(&errors, "p.toml", FILE, &sets, false)
}

fn insert(plan: &Plan) -> &plan::Insert {
    let Workload::Insert(insert) = &plan.variants[0].workload else {
        panic!()
    };
    insert
}

fn origin<'a>(plan: &'a Plan, key: &str) -> &'a str {
    let value = plan.resolved.iter().find(|value| value.key == key);
    &value.unwrap().origin
}

#[test]
fn an_argument_overrides_the_file() {
    assert_eq!(insert(&with(&[])).initial_rows, 20_000_000);
    let plan = with(&["workload.insert.initial-rows=20k"]);
    assert_eq!(insert(&plan).initial_rows, 20_000);
    assert_eq!(origin(&plan, "workload.insert.initial-rows"), "--set");
    assert_eq!(
        origin(&plan, "workload.insert.step.\"l.i0\".rows"),
        "--set",
        "what follows from it has its origin"
    );
    assert_eq!(origin(&plan, "clients"), "plan:2:11");
}

#[test]
fn an_argument_sets_what_the_file_does_not() {
    let plan = with(&[
        "repeats=3",
        "workload.insert.delete-per-insert=false",
        "data-dir=/mnt/x=y",
    ]);
    assert_eq!(plan.repeats, 3);
    assert!(!insert(&plan).delete_per_insert);
    assert_eq!(plan.data_dir.as_deref(), Some("/mnt/x=y"));
}

#[test]
fn a_key_is_not_set_twice() {
    for sets in [["seed=5", "seed=6"], ["clients=1", " clients = 1"]] {
        let sets = sets.map(String::from);
        let errors = plan::parse("plan.toml", plan::DEFAULT_PLAN, &sets).unwrap_err();
        let text = plan::render(&errors, "plan.toml", plan::DEFAULT_PLAN, &sets, false);
        assert_eq!(errors.len(), 1, "{text}");
        assert!(
            text.contains(&format!("set first: `--set {}`", sets[0])),
            "{text}"
        );
        assert!(text.contains(&format!("--set {}", sets[1])), "{text}");
    }
}

#[test]
fn a_list_may_be_given_as_one_value_or_with_commas() {
    assert_eq!(with(&["clients=8"]).clients, [8]);
    assert_eq!(with(&["clients=[1,2]"]).clients, [1, 2]);
    assert_eq!(with(&["clients=1,2, 16"]).clients, [1, 2, 16]);
    let plan = with(&["workload.insert.steps=l.i0,l.x,qr10"]);
    assert_eq!(
        insert(&plan)
            .steps
            .iter()
            .map(|step| step.name.as_str())
            .collect::<Vec<_>>(),
        ["l.i0", "l.x", "qr10"]
    );
}

#[test]
fn a_step_is_found_with_quotes_and_without() {
    let per_commit = |plan: &Plan, name: &str| {
        let step = insert(plan)
            .steps
            .iter()
            .find(|step| step.name == name)
            .unwrap();
        step.rows_per_commit
    };
    assert_eq!(per_commit(&with(&[]), "l.i1"), 25);
    assert_eq!(
        per_commit(
            &with(&["workload.insert.step.\"l.i1\".rows-per-commit=7"]),
            "l.i1"
        ),
        7
    );
    assert_eq!(
        per_commit(
            &with(&["workload.insert.step.'l.i1'.rows-per-commit=7"]),
            "l.i1"
        ),
        7
    );
    assert_eq!(
        per_commit(
            &with(&["workload.insert.step.l.i1.rows-per-commit=7"]),
            "l.i1"
        ),
        7
    );
    assert_eq!(
        per_commit(
            &with(&["workload.insert.step.l.i1={rows-per-commit=7}"]),
            "l.i1"
        ),
        7
    );
    assert_eq!(
        per_commit(
            &with(&["workload.insert.step.qr100.rows-per-commit=7"]),
            "qr100"
        ),
        7
    );
}

#[test]
fn options_of_a_config_can_be_set() {
    let plan = with(&[
        "config.postgres.base.set.work_mem=64MB",
        "config.postgres.base.set.jit=false",
        "config.postgres.a16.set.auto_explain.log_analyze=true",
        "config.postgres.base.set.wal_level=17",
    ]);
    let a16 = &plan.configs[1];
    assert_eq!(a16.name, "a16");
    let set: Vec<(&str, &str)> = a16
        .set
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        set,
        [
            ("work_mem", "64MB"),
            ("jit", "off"),
            ("wal_level", "17"),
            ("auto_explain.log_analyze", "on")
        ]
    );
}

#[test]
fn the_value_of_an_option_may_stand_in_braces_without_quotes() {
    let plan = with(&[
        "build.rocks.rocksdb=rocksdb@9.9.3",
        "config.rocksdb.small.set.block_based_table_factory.block_cache={id=AutoHyperClockCache;capacity=64M}",
        "config.rocksdb.small.set.block_based_table_factory={block_size=8192}",
        "config.rocksdb.small.load.compaction_options_universal={size_ratio=10;}",
        "target=[{ builds = [\"pg\"] }, { builds = [\"rocks\"] }]",
        "base=rocks.small",
    ]);
    let small = plan.configs.iter().find(|it| it.name == "small").unwrap();
    let value = |options: &[(String, String)], name: &str| {
        let option = options.iter().find(|(other, _)| other == name);
        option.map(|(_, value)| value.clone()).unwrap()
    };
    assert_eq!(
        value(&small.set, "block_based_table_factory.block_cache"),
        "{id=AutoHyperClockCache;capacity=64M}"
    );
    assert_eq!(
        value(&small.set, "block_based_table_factory"),
        "{block_size=8192}"
    );
    assert_eq!(
        value(&small.load, "compaction_options_universal"),
        "{size_ratio=10;}"
    );
    // All options of a config are still a table.
    let whole = with(&["config.postgres.base.set={ jit = false }"]);
    assert_eq!(value(&whole.configs[0].set, "jit"), "off");
}

#[test]
fn what_looks_like_a_number_is_text_where_text_is_wanted() {
    let plan = with(&[
        "build.pg.postgres=17.2",
        "name=2026-01-01",
        "server-user=1000",
    ]);
    assert_eq!(
        plan.builds[0].source,
        plan::BuildSource::Installed("17.2".to_owned())
    );
    assert_eq!(plan.name, "2026-01-01");
    assert_eq!(plan.server_user.as_deref(), Some("1000"));
}

#[test]
fn whole_tables_can_be_given() {
    let plan = with(&[
        "target=[{ builds = [\"pg\"], configs = [\"a16\"] }]",
        "build.zero={ null = \"bundled\" }",
    ]);
    assert_eq!(
        plan.targets
            .iter()
            .map(|target| target.name.as_str())
            .collect::<Vec<_>>(),
        ["pg.a16"]
    );
    assert_eq!(plan.builds.len(), 2);
    assert_eq!(plan.base, 0);
}

#[test]
fn an_argument_is_shown_where_it_is_wrong() {
    let shown = refused(&["clients=0"]);
    let expected = "\
error[plan::out-of-range]: `clients` is out of range: `0`
 |
 | --set clients=0
 |               ^ allowed: 1 to 10k

error: 1 error in `--set`; nothing was run
";
    assert_eq!(shown, expected);
    assert!(refused(&["workload.insert.initial-row=5"]).contains("did you mean `initial-rows`?"));
    assert!(refused(&["clients=1,x"]).contains("             ^ does not begin with a number"));
    assert!(refused(&["target.builds=pg"]).contains("`target` is a list"));
    assert!(refused(&["clients"]).contains("has no `=`"));
    assert!(refused(&["clients=[1,"]).contains("is not TOML"));
    assert!(refused(&["a..b=1"]).contains("not a key of TOML"));
    assert!(refused(&["\"a=1"]).contains("not a key of TOML"));
}

#[test]
fn an_argument_that_contradicts_the_file_shows_both() {
    let shown = refused(&["build.pg.url=postgres://db"]);
    assert!(
        shown.contains("| --set build.pg.url=postgres://db") && shown.contains("::: p.toml:10:1"),
        "{shown}"
    );
}

#[test]
fn errors_of_all_arguments_are_reported() {
    let shown = refused(&["clints=4", "repeats=0", "base=pg.a17"]);
    assert!(
        shown.ends_with("error: 3 errors in `--set`; nothing was run\n"),
        "{shown}"
    );
}
