//! The shipped plans are valid, as are the commands in their comments and the examples in the
//! documents.

use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans")
}

fn shipped() -> Vec<PathBuf> {
    let entries = fs_err::read_dir(folder()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

fn parse(path: &Path, sets: &[String]) -> plan::Plan {
    let text = fs_err::read_to_string(path).unwrap();
    let name = path.display().to_string();
    match plan::parse(&name, &text, sets) {
        Ok((plan, warnings)) if warnings.is_empty() => plan,
        Ok((_, diagnostics)) | Err(diagnostics) => {
            panic!("{}", plan::render(&diagnostics, &name, &text, sets, false))
        }
    }
}

#[test]
fn every_plan_is_valid_and_has_the_documented_number_of_cells() {
    let readme = fs_err::read_to_string(folder().join("README.md")).unwrap();
    let plans = shipped();
    assert!(plans.len() >= 4, "{plans:?}");
    for path in plans {
        let plan = parse(&path, &[]);
        let name = path.file_name().unwrap().to_str().unwrap();
        let row = readme
            .lines()
            .find(|line| line.starts_with(&format!("| [{name}]")))
            .unwrap_or_else(|| panic!("the README does not have {name}"));
        let said: usize = row.rsplit('|').nth(1).unwrap().trim().parse().unwrap();
        assert_eq!(plan.cells().len(), said, "{name}");
    }
}

#[test]
fn each_set_argument_in_the_comment_of_a_plan_has_an_effect() {
    let mut small_count = 0;
    for path in shipped() {
        let text = fs_err::read_to_string(&path).unwrap();
        let comment: Vec<&str> = text.lines().map_while(|line| line.strip_prefix('#')).collect();
        let commands = comment.join("\n").replace("\\\n", " ");
        let whole = parse(&path, &[]);

        for command in commands.lines().filter(|line| line.trim().starts_with("assay run ")) {
            let words: Vec<&str> = command.split_ascii_whitespace().collect();
            let sets: Vec<String> = words
                .windows(2)
                .filter(|pair| pair[0] == "--set")
                .map(|pair| pair[1].trim_matches('\'').to_owned())
                .collect();
            small_count += usize::from(!sets.is_empty());
            let small = parse(&path, &sets);

            // Each `--set` is the origin of a value, and none adds a config.
            assert_eq!(small.configs.len(), whole.configs.len());
            let set = small.resolved.iter().filter(|value| value.origin == "--set");
            assert!(set.count() >= sets.len(), "{command:?}");
        }
    }
    assert_eq!(small_count, shipped().len() - 1, "only one plan is small by itself");
}

#[test]
fn the_example_plans_are_valid() {
    let examples = [
        ("two-builds", 5),
        ("own-builds", 5),
        ("remote-server", 5),
        ("ci-gate", 10),
        ("own-test", 5),
        ("own-transactions", 5),
    ];
    for (name, repeats) in examples {
        let path = folder().join(format!("../docs/examples/{name}.toml"));
        let plan = parse(&path, &[]);
        assert_eq!((plan.targets.len(), plan.repeats), (2, repeats), "{name}");
    }
}

#[test]
fn the_example_of_a_test_is_valid() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plan.md");
    let docs = fs_err::read_to_string(docs).unwrap();
    let (_, section) = docs.split_once("### Your own tests").unwrap();
    let (_, example) = section.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let text = format!("{example}\n[build.x]\nnull = \"bundled\"\n");
    let (plan, warnings) = plan::parse("docs", &text, &[])
        .unwrap_or_else(|errors| panic!("{}", plan::render(&errors, "docs", &text, &[], false)));
    assert_eq!(warnings, []);
    let plan::Workload::Sysbench(sysbench) = &plan.variants[0].workload else { panic!() };
    let queries = |name: &str| {
        let step = sysbench.steps.iter().find(|step| step.name == name);
        match &step.unwrap().kind {
            plan::SysbenchStepKind::Run { test, .. } => test.queries_per_event(),
            kind => panic!("{kind:?}"),
        }
    };
    assert_eq!(queries("inbox"), 5.0);
    assert_eq!(queries("archive"), 1.0);
    assert_eq!(queries("mixed"), 1.0);
}

#[test]
fn the_script_of_the_documentation_is_valid() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/transactions.md");
    let docs = fs_err::read_to_string(docs).unwrap();
    let (_, section) = docs.split_once("## Scripts").unwrap();
    let (_, script) = section.split_once("```\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    let text = format!(
        "[workload.transactions]\nscript = '''\n{script}'''\n[build.x]\nnull = \"bundled\"\n"
    );
    let (plan, warnings) = plan::parse("docs", &text, &[])
        .unwrap_or_else(|errors| panic!("{}", plan::render(&errors, "docs", &text, &[], false)));
    assert_eq!(warnings, []);
    let plan::Workload::Transactions(transactions) = &plan.variants[0].workload else { panic!() };
    let steps = transactions.steps.iter().map(|step| step.name.as_str());
    assert!(steps.eq(["load", "index", "settle", "mixed"]));
}

#[test]
fn every_key_is_documented() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plan.md");
    let docs = fs_err::read_to_string(docs).unwrap();
    for (workload, keys, engine) in [
        ("insert", "", "null"),
        ("kv", "", "rocksdb"),
        ("sysbench", "", "null"),
        ("transactions", "use = \"orders\"", "null"),
    ] {
        let text = format!("[workload.{workload}]\n{keys}\n[build.x]\n{engine} = \"bundled\"\n");
        let (plan, _) = plan::parse("plan.toml", &text, &[]).unwrap();
        let keys = plan.resolved.iter().map(|value| value.key.as_str());
        let is_table =
            |key: &str| ["build", "config", "target"].contains(&key.split('.').next().unwrap());
        let keys = keys.filter(|key| !is_table(key));
        for key in keys {
            let name = key.rsplit('.').next().unwrap();
            assert!(docs.contains(&format!("`{name}`")), "{key}");
        }
    }
}

#[test]
fn the_recipes_of_the_documentation_are_read() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/builds.md");
    let docs = fs_err::read_to_string(docs).unwrap();
    let (_, section) = docs.split_once("### Recipes").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();

    let blocks = section.split("```toml\n").skip(1);
    let recipes: Vec<&str> = blocks.filter_map(|block| Some(block.split_once("```")?.0)).collect();
    assert_eq!(recipes.len(), 5);
    for recipe in recipes {
        let build = format!("[build.x]\ngit = \"clone\"\nref = \"main\"\n{recipe}");
        let text = format!("[workload.insert]\n{build}");
        let (plan, _) = plan::parse("docs", &text, &[]).unwrap_or_else(|errors| {
            panic!("{}", plan::render(&errors, "docs", &text, &[], false))
        });
        let plan::BuildSource::Commit(source) = &plan.builds[0].source else {
            panic!("no build of a commit");
        };
        assert!(!source.make.contains('\\'), "{}", source.make);
    }
}
