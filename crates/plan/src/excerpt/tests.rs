//! Plans that are cut down to two targets and one step.

use super::*;
use crate::parse;

const PLAN: &str = r#"
name = "nightly" # secret-comment
clients = [1, 4]
repeats = 3
data-dir = "/home/joe/data"
[profile]
[workload.sysbench]
rows = 1000
steps = ["load", "index", "point-query", "update-index", "insert"]
step."update-index".time = "3s"
step."insert".time = "4s"
[build.a]
postgres = "/home/joe/pg"
factors.compiler = "O3"
[build.b]
postgres = "17.2"
[build.c]
postgres = "16"
[config.postgres.base]
file = "base.conf"
set = { work_mem = "1MB", jit = false }
[config.postgres.more]
extends = "base"
set = { WORK_MEM = "2MB" }
"#;

fn wanted<'a>(steps: &[&str]) -> Excerpt<'a> {
    Excerpt {
        name: "finding",
        targets: ["b.more", "a.base"],
        clients: 4,
        variant: None,
        steps: steps.iter().map(|step| (*step).to_owned()).collect(),
        repeats: 7,
        sources: [("a".to_owned(), "postgres@15.3".to_owned())].into(),
        file_options: [
            vec![("jit".into(), "on".into()), ("fsync".into(), "off".into())],
            Vec::new(),
        ],
        left_out: vec!["config.postgres.more.set.effective_io_concurrency".into()],
        is_profiled: false,
        is_exact: true,
    }
}

#[test]
fn an_excerpt_has_two_targets_and_what_one_step_needs() {
    let sets = ["config.postgres.more.set.effective_io_concurrency=0".to_owned()];
    let (plan, _) = parse("p.toml", PLAN, &sets).unwrap();
    let steps = plan.variants[0].workload.steps_to_reach("update-index");
    assert_eq!(steps, ["load", "index", "update-index"]);

    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let text = excerpt(&plan, PLAN, &sets, &wanted(&steps)).unwrap();
    let (cut, warnings) = parse("x.toml", &text, &[]).unwrap_or_else(|errors| {
        panic!("{}\n{text}", crate::render(&errors, "x", &text, &[], false))
    });
    assert!(warnings.is_empty(), "{warnings:?}");
    let names: Vec<&str> = cut.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!((names, cut.base), (vec!["b.more", "a.base"], 0));
    assert_eq!((cut.repeats, cut.clients.as_slice()), (7, [4].as_slice()));
    assert_eq!((cut.profile.repeats, cut.exact.repeats), (0, crate::EXACT_REPEATS));
    assert!(!text.contains("secret-comment") && !text.contains("joe"), "{text}");

    // The options of files come first, and those of `set` override them.
    let more = &cut.configs[cut.targets[0].config];
    let set: BTreeMap<&str, &str> =
        more.set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [("WORK_MEM", "2MB"), ("fsync", "off"), ("jit", "off")];
    assert_eq!(set, expected.into(), "{text}");
    assert_eq!(cut.builds[1].factors, [("compiler".to_owned(), "O3".to_owned())]);
    assert!(text.contains("postgres = \"postgres@15.3\""), "{text}");
}

#[test]
fn a_variant_becomes_the_workload() {
    let text = "[workload.insert]\ninitial-rows = 1000\nsteps = ['l.i0', 'l.x', 'settle', 'qr0', 'l.i1', 'qr100']\n\
                    [workload.insert.variant.big]\n[workload.insert.variant.small]\ntransactions = 'small'\n\
                    step.'l.i1'.rows = 2000\n[build.a]\nsqlite = 'bundled'\n[config.sqlite.x]\n[config.sqlite.y]\n";
    let (plan, _) = parse("p.toml", text, &[]).unwrap();
    let steps = plan.variants[1].workload.steps_to_reach("qr100");
    assert_eq!(steps, ["l.i0", "l.x", "settle", "l.i1", "qr100"]);
    let wanted = Excerpt {
        targets: ["a.x", "a.y"],
        variant: Some("small"),
        sources: BTreeMap::new(),
        file_options: Default::default(),
        is_exact: false,
        ..wanted(&[])
    };
    let wanted = Excerpt { steps, ..wanted };
    let cut = excerpt(&plan, text, &[], &wanted).unwrap();
    let (cut, _) = parse("x.toml", &cut, &[]).unwrap();
    assert_eq!((cut.variants.len(), cut.targets.len()), (1, 2));
    let Workload::Insert(insert) = &cut.variants[0].workload else { panic!("{cut:?}") };
    assert!(matches!(insert.steps[3].kind, InsertStepKind::Write { .. }), "{insert:?}");
    assert_eq!(insert.steps[0].rows_per_commit, 10);
}

#[test]
fn a_step_alone_keeps_the_changes_of_its_variant_and_not_the_steps_before_it() {
    let text = "alone = ['l.i2']\n[workload.insert]\ninitial-rows = 1000\n\
                    steps = ['l.i0', 'l.x', 'settle', 'l.i1', 'l.i2']\n\
                    [workload.insert.variant.big]\n[workload.insert.variant.small]\ntransactions = 'small'\n\
                    [build.a]\nsqlite = 'bundled'\n[config.sqlite.x]\n[config.sqlite.y]\n";
    let (plan, _) = parse("p.toml", text, &[]).unwrap();
    let alone =
        plan.variants.iter().find(|variant| variant.name.as_deref() == Some("small-alone-l-i2"));
    let steps = alone.unwrap().workload.steps_to_reach("l.i2");
    assert_eq!(steps, ["l.i0", "l.x", "settle", "l.i2"]);

    let wanted = Excerpt {
        targets: ["a.x", "a.y"],
        variant: Some("small-alone-l-i2"),
        sources: BTreeMap::new(),
        file_options: Default::default(),
        is_exact: false,
        steps,
        ..wanted(&[])
    };
    let cut = excerpt(&plan, text, &[], &wanted).unwrap();
    let (cut, _) = parse("x.toml", &cut, &[]).unwrap();
    let Workload::Insert(insert) = &cut.variants[0].workload else { panic!("{cut:?}") };
    assert_eq!(insert.steps.len(), 4);
    assert_eq!(insert.steps[0].rows_per_commit, 10, "small transactions");
}

#[test]
fn what_a_set_argument_gave_is_written_as_toml() {
    for (text, is_number) in
        [("5", true), ("0.5", true), ("true", true), ("05", false), ("5s", false), ("inf", false)]
    {
        assert_eq!(is_literal(text), is_number, "{text}");
    }
}

#[test]
fn a_target_of_a_design_becomes_a_config_of_its_own() {
    let text = "[workload.sysbench]\nsteps = ['load', 'insert']\n[build.a]\npostgres = '/x'\n\
             [config.postgres.base]\nset.jit = false\n\
             [config.postgres.small]\nextends = 'base'\nmemory = '1GiB'\n\
             [factors.set]\nfsync = [true, false]\n[factors.configs]\nsize = ['base', 'small']\n";
    let (plan, _) = parse("p.toml", text, &[]).unwrap();
    let wanted = Excerpt {
        targets: ["a.base", "a.base-04"],
        clients: 1,
        sources: BTreeMap::new(),
        file_options: [Vec::new(), Vec::new()],
        ..wanted(&["load", "insert"])
    };
    let cut = excerpt(&plan, text, &[], &wanted).unwrap();
    let (again, _) = parse("cut.toml", &cut, &[]).unwrap();
    assert_eq!(again.targets.len(), 2, "{cut}");
    for (index, target) in again.targets.iter().enumerate() {
        let was = plan.targets.iter().find(|other| other.name == wanted.targets[index]).unwrap();
        let (was, is) = (&plan.configs[was.config], &again.configs[target.config]);
        assert_eq!((&is.set, &is.limits), (&was.set, &was.limits), "{cut}");
    }
    assert_eq!(again.configs[again.targets[1].config].limits.memory_bytes, Some(1 << 30));
}
