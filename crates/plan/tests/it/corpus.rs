//! Every plan in `corpus/ok` resolves as in the file next to it, and every plan in `corpus/bad` has
//! the diagnostics in the file next to it. Lines `# --set ARGUMENT` in a plan are its arguments.
//! `UPDATE=1` rewrites the expected files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plan::{InsertStepKind, Plan, Severity, WriteEnd};

/// A plan of the corpus.
pub struct Case {
    pub path: PathBuf,
    pub name: String,
    pub text: String,
    pub sets: Vec<String>,
}

/// Returns the plans in a folder of the corpus, sorted by name.
pub fn cases(folder: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
    let mut paths: Vec<PathBuf> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    let case = |path: PathBuf| {
        let text = fs_err::read_to_string(&path).unwrap();
        let sets = text
            .lines()
            .filter_map(|line| line.strip_prefix("# --set "))
            .map(str::to_owned)
            .collect();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        Case { path, name, text, sets }
    };
    paths.into_iter().map(case).collect()
}

/// Lists the values and targets of a plan.
fn listing(plan: &Plan) -> String {
    let width = plan.resolved.iter().map(|value| value.key.len()).max().unwrap_or(0);
    let mut lines = String::new();
    for value in &plan.resolved {
        let origin = value.origin.trim_start_matches("plan:");
        lines.push_str(&format!("{:width$} = {}  # {origin}\n", value.key, value.value));
    }
    lines.push('\n');
    for target in &plan.targets {
        let config = &plan.configs[target.config];
        lines.push_str(&format!(
            "{} files {:?} set {:?}{}{}{}\n",
            target.name,
            config.files,
            config.set,
            load_options(config),
            limits(config),
            surroundings(config)
        ));
    }
    for variant in plan.variants.iter().filter(|variant| variant.name.is_some()) {
        lines.push_str(&format!("{variant:?}\n"));
    }
    lines
}

fn load_options(config: &plan::Config) -> String {
    match config.load.as_slice() {
        [] => String::new(),
        load => format!(" load {load:?}"),
    }
}

fn surroundings(config: &plan::Config) -> String {
    match config.surroundings().as_slice() {
        [] => String::new(),
        surroundings => format!(" surroundings {surroundings:?}"),
    }
}

fn limits(config: &plan::Config) -> String {
    let memory = config.limits.memory_bytes;
    let cpus = config.limits.cpus.as_ref();
    let quota = config.limits.cpu_quota_milli;
    let unknown = if config.skips_unknown_options { " skips unknown options" } else { "" };
    let statistics = if config.statistics { " statistics" } else { "" };
    let tls = if config.tls { " tls" } else { "" };
    memory.map_or(String::new(), |bytes| format!(" memory {bytes}"))
        + &cpus.map_or(String::new(), |cpus| format!(" cpus {cpus:?}"))
        + &quota.map_or(String::new(), |milli| format!(" cpu quota {milli}m"))
        + unknown
        + statistics
        + tls
}

fn check(case: &Case, extension: &str, got: &str) -> Result<(), String> {
    let path = case.path.with_extension(extension);
    if std::env::var_os("UPDATE").is_some() {
        fs_err::write(&path, got).unwrap();
        return Ok(());
    }
    let expected = fs_err::read_to_string(&path).unwrap_or_default();
    if expected == got {
        return Ok(());
    }
    Err(format!("{} has changed; expected:\n{expected}\ngot:\n{got}\n", path.display()))
}

fn check_all(results: Vec<Result<(), String>>) {
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{}(UPDATE=1 rewrites the expected files)", failures.join("\n"));
}

#[test]
fn good_plans_resolve_as_expected() {
    let cases = cases("ok");
    assert!(cases.len() >= 8);
    let results = cases.iter().map(|case| match plan::parse(&case.name, &case.text, &case.sets) {
        Ok((plan, warnings)) => {
            let warnings = plan::render(&warnings, &case.name, &case.text, &case.sets, false);
            check(case, "resolved", &format!("{}{warnings}", listing(&plan)))
        }
        Err(errors) => Err(plan::render(&errors, &case.name, &case.text, &case.sets, false)),
    });
    check_all(results.collect());
}

#[test]
fn bad_plans_are_refused_as_expected() {
    let cases = cases("bad");
    assert!(cases.len() >= 25);
    let results = cases.iter().map(|case| match plan::parse(&case.name, &case.text, &case.sets) {
        Ok(_) => Err(format!("{} was not refused\n", case.name)),
        Err(errors) => {
            assert!(errors.iter().any(|error| error.severity == Severity::Error), "{}", case.name);
            check(case, "stderr", &plan::render(&errors, &case.name, &case.text, &case.sets, false))
        }
    });
    check_all(results.collect());
}

/// A code that only a large plan shows; the test of chains has it.
const OF_LARGE_PLANS: &str = "plan::too-many-options";

#[test]
fn every_code_is_in_the_corpus() {
    let mut codes: Vec<&str> = Vec::new();
    for case in cases("bad").iter().chain(&cases("ok")) {
        let diagnostics = match plan::parse(&case.name, &case.text, &case.sets) {
            Ok((_, warnings)) => warnings,
            Err(errors) => errors,
        };
        codes.extend(diagnostics.iter().map(|diagnostic| diagnostic.code));
    }

    let mut missing = Vec::new();
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let source = fs_err::read_to_string(path).unwrap();
        for part in source.split("\"plan::").skip(1) {
            let code = format!("plan::{}", part.split('"').next().unwrap());
            if !codes.contains(&code.as_str()) && code != OF_LARGE_PLANS {
                missing.push(code);
            }
        }
    }
    assert!(missing.is_empty(), "no plan of the corpus shows {missing:?}");
}

/// Returns the source files in a folder and those below it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources.extend(self::sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
    sources
}

#[test]
fn the_built_in_plan_is_small_and_right() {
    let (plan, warnings) = plan::parse(plan::DEFAULT_PLAN_PATH, plan::DEFAULT_PLAN, &[]).unwrap();
    assert!(warnings.is_empty());
    let names: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["sqlite.full", "sqlite.normal"]);
    assert_eq!(plan.base, 0);
    assert_eq!(plan.clients, [1]);
    let plan::Workload::Insert(insert) = &plan.variants[0].workload else { panic!() };
    let steps: Vec<&str> = insert.steps.iter().map(|step| step.name.as_str()).collect();
    let seven = ["l.i0", "l.x", "l.i1", "l.i2", "settle", "qr100", "qp1000"];
    assert_eq!(steps, seven);
    // The recommended number for verdicts.
    assert_eq!(plan.repeats, 5);
    let normal = &plan.configs[plan.targets[1].config];
    let value = |name: &str| {
        normal.set.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    };
    assert_eq!(value("journal_mode"), Some("wal"));
    assert_eq!(value("synchronous"), Some("normal"));
}

/// A newcomer waits for ten cells of the built-in plan: about eight seconds each on two processors.
#[test]
fn the_built_in_plan_answers_soon() {
    let (plan, _) = plan::parse(plan::DEFAULT_PLAN_PATH, plan::DEFAULT_PLAN, &[]).unwrap();
    let plan::Workload::Insert(insert) = &plan.variants[0].workload else { panic!() };

    let mut loaded_rows = 0;
    let mut written_rows = 0;
    let mut query_time = Duration::ZERO;
    for step in &insert.steps {
        match step.kind {
            InsertStepKind::Load { rows } => loaded_rows += rows,
            InsertStepKind::Write { until: WriteEnd::Rows(rows), .. } => written_rows += rows,
            InsertStepKind::Query { time, .. } => query_time += time,
            _ => {}
        }
    }

    assert!(loaded_rows <= 400_000, "{loaded_rows}");
    assert!(written_rows <= 35_000, "{written_rows}");
    assert!(query_time <= Duration::from_secs(3), "{query_time:?}");
}

#[test]
fn no_password_is_shown() {
    let text = "[workload.insert]\n[build.a]\nurl = \"postgres://joe:s3cr3t@db/x\"\nurl = \"postgres://joe:s3cr3t@db\"\n";
    let sets =
        ["build.b.url=mysql://joe:s3cr3t@db".to_owned(), "x=postgres://joe:s3cr3t@db".to_owned()];
    let errors = plan::parse("p.toml", text, &sets).unwrap_err();
    let shown = plan::render(&errors, "p.toml", text, &sets, true);
    assert!(shown.contains("joe:") && !shown.contains("s3cr3t"), "{shown}");
    let (plan, _) =
        plan::parse("p.toml", &text.replace("\nurl = \"postgres://joe:s3cr3t@db\"", ""), &[])
            .unwrap();
    assert!(!format!("{plan:?}").contains("s3cr3t"));
}

#[test]
fn only_twenty_diagnostics_are_shown_and_errors_go_first() {
    let mut text =
        String::from("[workload.insert]\n[build.a]\nnull = \"bundled\"\n[config.sqlite]\n");
    for number in 0..30 {
        text.push_str(&format!("c{number} = {{ set = {{}} }}\n"));
    }
    text.push_str("[workload.insert.step.\"qr7\"]\n");
    let (_, warnings) = plan::parse("p.toml", &text, &[]).unwrap();
    assert_eq!(warnings.len(), 31);
    let shown = plan::render(&warnings, "p.toml", &text, &[], false);
    assert_eq!(shown.matches("\nwarning[").count() + 1, 20, "{shown}");
    assert!(shown.ends_with("\n... and 11 more\n"), "{shown}");

    text.push_str("[no]\n");
    let errors = plan::parse("p.toml", &text, &[]).unwrap_err();
    let shown = plan::render(&errors, "p.toml", &text, &[], false);
    assert!(shown.contains("unknown key `no`"), "{shown}");
    assert!(
        shown.ends_with(
            "\n... and 12 more\n\nerror: 1 error and 31 warnings in `p.toml`; nothing was run\n"
        ),
        "{shown}"
    );
}

#[test]
fn colors_are_optional() {
    let errors = plan::parse("p.toml", "x = 1", &[]).unwrap_err();
    assert!(plan::render(&errors, "p.toml", "x = 1", &[], true).contains('\u{1b}'));
    assert!(!plan::render(&errors, "p.toml", "x = 1", &[], false).contains('\u{1b}'));
}

#[test]
fn a_plan_without_a_name_is_named_after_its_file() {
    let text = "[workload.insert]\n[build.a]\nnull = \"bundled\"\n";
    let name = |path: &str| plan::parse(path, text, &[]).unwrap().0.name;
    assert_eq!(name("plans/round 6.toml"), "round-6");
    assert_eq!(name("pg_15.v2.toml"), "pg_15");
    assert_eq!(name("-"), "-");
    assert_eq!(name(""), "plan");
}
