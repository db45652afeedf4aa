//! What can't be read of a server that Assay did not start, and what would allow it.

use crate::contract::Obstacle;

/// The metrics that need the server's processes and disks.
const OF_PROCESSES: &str = "server CPU, own CPU, `rpq`, `wkbpi` and `others%`";

/// How much of a server's processes Assay sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Its processes.
    Processes,
    /// None: they run on another host.
    OtherHost,
    /// None: no process of this host is known to be the server's.
    Nothing,
}

/// The facts that a user may not read of a server.
pub struct Unreadable {
    /// The facts, each with the statement that lets the user read it.
    pub hidden: Vec<Obstacle>,
    /// The server's data directory; `None` if the user may not read where it is.
    pub directory: Option<String>,
}

impl Unreadable {
    /// Adds an obstacle if Assay does not see the server's processes.
    pub(super) fn with_processes(mut self, sight: Sight) -> Vec<Obstacle> {
        match (sight, self.directory) {
            (Sight::OtherHost, _) => self.hidden.push(Obstacle {
                what: format!(
                    "the server is on another host, so {OF_PROCESSES} are not applicable"
                ),
                help: "run Assay on the server's host, or one of its load ranks".into(),
            }),
            (Sight::Nothing, Some(directory)) => self.hidden.push(Obstacle {
                what: format!(
                    "no process that Assay may look at uses the server's data directory `{directory}`, so {OF_PROCESSES} are not \
                     applicable"
                ),
                help: "run Assay as root, or as the system user of the server".into(),
            }),
            // Without the directory, `hidden` already has the reason.
            (Sight::Processes, _) | (Sight::Nothing, None) => {}
        }
        self.hidden
    }
}

/// Returns that a role may not read where the server's files are. `grant` is the statement that
/// allows it.
pub(super) fn hidden_directory(role: &str, setting: &str, grant: &str) -> Obstacle {
    Obstacle {
        what: format!(
            "{role} may not read `{setting}`, by which Assay finds the server's processes and disks, so {OF_PROCESSES} are not \
             applicable"
        ),
        help: format!("run `{grant}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_has_its_reason_and_its_remedy() {
        let found = |directory: Option<&str>, sight| {
            let directory = directory.map(str::to_owned);
            let found = Unreadable { hidden: Vec::new(), directory }.with_processes(sight);
            found.into_iter().map(|obstacle| obstacle.what).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(found(Some("/data"), Sight::Processes), "");
        assert_eq!(found(None, Sight::Nothing), "", "the server hides its directory");
        assert!(found(Some("/data"), Sight::Nothing).contains("data directory `/data`"));
        assert!(
            found(Some("/data"), Sight::OtherHost).starts_with("the server is on another host")
        );
    }
}
