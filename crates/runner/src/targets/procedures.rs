//! Creates the procedures that a cell calls, and drops them in a foreign server.

use anyhow::Context;
use engine::Session;
use workload::transactions::Procedure;

/// Creates procedures in a server that Assay started. A copied database may have procedures of these
/// names, which are dropped first.
pub fn make(session: &mut impl Session, procedures: &[Procedure]) -> anyhow::Result<()> {
    for procedure in procedures {
        drop_one(session, &procedure.signature)?;
        create(session, procedure)?;
    }
    Ok(())
}

/// Creates procedures in a foreign server, and calls `made` for each as soon as it exists.
pub fn make_in_foreign(
    session: &mut impl Session,
    procedures: &[Procedure],
    mut made: impl FnMut(&Procedure) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for procedure in procedures {
        create(session, procedure)?;
        made(procedure)?;
    }
    Ok(())
}

fn create(session: &mut impl Session, procedure: &Procedure) -> anyhow::Result<()> {
    let name = &procedure.signature;
    let Err(error) = session.query(&procedure.create) else {
        return Ok(());
    };

    // The codes of PostgreSQL and of MySQL for a procedure that exists.
    let is_there = matches!(error.code.as_deref(), Some("42723" | "1304"));
    let failed = anyhow::Error::from(error).context(procedure.create.clone());
    if !is_there {
        return Err(failed.context(format!("the procedure `{name}` cannot be created")));
    }
    Err(failed.context(format!(
        "the procedure `{name}` exists, and this run did not create it; if a killed run left it \
         behind, resume that run with `assay run --resume` to drop it, or use `drop procedure {name}`"
    )))
}

/// Drops procedures, and removes them from the list. Leaves the first `kept` of them.
pub fn drop_all(
    session: &mut impl Session,
    procedures: &mut Vec<String>,
    kept: usize,
) -> anyhow::Result<()> {
    // A procedure leaves the list only when it is gone, so that a later try drops the rest.
    while let Some(name) = procedures.get(kept..).and_then(<[String]>::last) {
        drop_one(session, name)?;
        procedures.pop();
    }
    Ok(())
}

fn drop_one(session: &mut impl Session, name: &str) -> anyhow::Result<()> {
    let sql = format!("drop procedure if exists {name}");
    session.query(&sql).with_context(|| format!("`{sql}`"))?;
    Ok(())
}
