//! `assay check`: checks a plan and estimates its cost without running it.

mod builds;
mod design;
mod differences;
mod summary;
mod times;
mod values;

use std::path::{Path, PathBuf};

use inquiry::known_run::KnownRun;
use runner::matrix::only::CellFilters;
use runner::matrix::{matching, references};
use runner::prepare::data_place::{WRITABLE_DATA_HELP, free_bytes_at, refuse_unusable};
use runner::prepare::estimate;
use runner::prepare::memory::{self, HostMemory};
use runner::prepare::other_host::OtherHost;
use runner::prepare::plan_file::{self, PlanFile};
use runner::prepare::preflight::reject_impossible;
use runner::prepare::{commits, locate, overridden};
use runner::{DATA, Events as _, RESULTS};

use crate::cli::CheckArgs;
use crate::display::Display;
use crate::exit::Exit;
use crate::output::print;
use summary::{Disk, Expected};

/// Prints the estimates, the builds and the differences between the configs of a plan.
pub fn check(args: &CheckArgs) -> anyhow::Result<Exit> {
    let display = Display::new(false);
    let mut file = plan_file::read(&args.plan.request(), &display)?;
    if let Some(pair) = &args.between {
        return differences::print_between(&file, pair);
    }
    reject_impossible(&file)?;

    let data_root = match (&args.data, &file.plan.data_dir) {
        (Some(given), _) => given.clone(),
        (None, Some(planned)) => PathBuf::from(planned),
        (None, None) => Path::new(RESULTS).join(DATA),
    };
    let references = references(&file.plan);
    let only = CellFilters::new(&args.only, &references)?;
    let tasks = matching(&file.plan, &references, &only)?;
    let selected: Vec<plan::Cell> = tasks.into_iter().map(|task| task.cell).collect();

    let unbuilt = commits::use_stored(&mut file, selected.iter().copied())?;
    let other_host = args.host.as_deref().map(OtherHost::read).transpose()?;
    // The run may have other results.
    let is_given = args.data.is_some() || file.plan.data_dir.is_some();
    if is_given && other_host.is_none() {
        refuse_unusable(&data_root, WRITABLE_DATA_HELP)?;
    }
    let cells = selected.iter().copied();
    let located = locate::locate(&file, cells, Some(&data_root), other_host.as_ref(), &display)?;
    warn_of_options(&file, other_host.as_ref(), &display)?;

    let plan = &file.plan;
    let known = KnownRun::find(plan, args.like.as_deref(), Path::new(RESULTS))?;
    let expected = Expected {
        estimate: estimate::of_cells(plan, &selected, known.as_ref().map(|known| &known.times)),
        disk: disk(other_host.as_ref(), &data_root),
    };

    let mut text = expected.summary(plan, &selected, &only);
    text.push_str(&times::times_text(plan, &selected, known.as_ref()));
    text.push_str(&builds::builds_text(&located, &unbuilt));
    // A design says itself how its targets differ.
    text.push_str(&match &plan.designed {
        Some(designed) => design::design_text(designed),
        None => differences::from_base(&file, &located.builds)?,
    });
    if args.all {
        text.push_str(&values::values_and_cells(plan, &selected))
    } else {
        text.push_str("\n`--all` shows every value and its origin, and the order of the cells\n")
    }

    print(&text)?;
    Ok(if expected.has_space() { Exit::Ok } else { Exit::Failed })
}

/// Warns about options that have no effect, and about caches that the memory cannot hold.
fn warn_of_options(
    file: &PlanFile,
    other_host: Option<&OtherHost>,
    display: &Display,
) -> anyhow::Result<()> {
    let targets = 0..file.plan.targets.len();
    for warning in overridden::overridden_options(file, targets.clone())? {
        display.warn(Some(overridden::OVERRIDDEN_CODE), &warning);
    }

    let memory = match other_host {
        Some(host) => HostMemory { bytes: host.memory_bytes, of: "that host" },
        None => {
            let bytes = probe::host(Path::new("/")).memory_total_bytes;
            HostMemory { bytes, of: "this host" }
        }
    };
    for warning in memory::oversized_caches(file, targets, memory)? {
        display.warn(Some(memory::CACHE_CODE), &warning);
    }
    Ok(())
}

/// Returns the disk on which a run would put its databases.
fn disk(other_host: Option<&OtherHost>, data_root: &Path) -> Disk {
    match other_host {
        Some(host) => Disk { free_bytes: host.free_bytes, name: "on that host".into() },
        None => Disk {
            free_bytes: free_bytes_at(data_root),
            name: format!("for `{}`", data_root.display()),
        },
    }
}
