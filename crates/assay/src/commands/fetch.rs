//! `assay fetch`: downloads builds of engines.

use builds::{BuildError, Spec, check_name};
use runner::prepare::fetching::fetch_each;

use crate::cli::FetchArgs;
use crate::exit::{Exit, report_error};
use crate::output::print;

/// Downloads builds.
pub fn fetch(args: &FetchArgs) -> anyhow::Result<Exit> {
    let specs = args.specs.iter().map(|text| Spec::parse(text)).collect::<Result<Vec<_>, _>>()?;
    if let Some(name) = &args.name {
        check_name(name)?;
        if specs.len() > 1 {
            let count = specs.len();
            let message = format!("`--name {name}` names one build, but {count} specs are given");
            return Err(BuildError::usage(message, "fetch each build by itself").into());
        }
    }

    let mut exit = Exit::Ok;
    let mut is_any_fetched = false;
    let say = |line: &str| eprintln!("{line}");
    fetch_each(&specs, args.name.as_deref(), &say, |fetched| {
        match fetched {
            Ok(build) => {
                is_any_fetched = true;
                print(&format!(
                    "{}\t{} {}\t{}\n",
                    build.manifest.name,
                    build.manifest.product,
                    build.manifest.version,
                    build.path().display()
                ))?;
            }
            // A failure does not keep the others from being fetched.
            Err(error) => exit = exit.max(report_error(&error)),
        }
        Ok(())
    })?;
    // A usage error says that nothing was done.
    Ok(if is_any_fetched { exit.min(Exit::Failed) } else { exit })
}
