//! The keys `host-metrics` and `host-disks` of a build: the exporter that describes the host of a running
//! server.

use crate::reading::context::{Context, Section, ValueKind};
use crate::reading::value_kinds::{Line, ListOf};
use crate::spec::HostMetrics;
use crate::text::tree::{Entry, Node};
use crate::text::wording::code;

/// The URL of the exporter.
pub(crate) const HOST_METRICS: &str = "host-metrics";
/// The disks of the database.
pub(crate) const HOST_DISKS: &str = "host-disks";

/// Text that Prometheus's exporters serve over HTTP: neither HTTPS nor passwords.
const SCHEME: &str = "http://";

/// The keys of a build about the host of its server, as the plan writes them.
pub(crate) struct ExporterKeys {
    url: Option<Entry>,
    disks: Option<Entry>,
}

impl ExporterKeys {
    /// Takes the keys, which may be missing.
    pub(crate) fn take(section: &mut Section) -> Self {
        Self { url: section.take(HOST_METRICS), disks: section.take(HOST_DISKS) }
    }

    /// Reads the keys of the build at `path`; they are only for a server that is running.
    pub(crate) fn read(
        self,
        cx: &mut Context<'_>,
        path: &str,
        is_running: bool,
    ) -> Option<HostMetrics> {
        let first = self.url.as_ref().or(self.disks.as_ref())?;
        let what = code(&format!("{path}.{}", first.key));
        if !is_running {
            let why = "assay starts this build's engine itself, and samples its host";
            refuse(cx, first, &format!("{what} needs `url`"), why);
            return None;
        }
        let Some(url) = self.url else {
            let why = "nothing tells the state of these disks";
            refuse(cx, first, &format!("{what} needs `{HOST_METRICS}`"), why);
            return None;
        };

        let mut metrics = read_url(cx, &format!("{path}.{HOST_METRICS}"), &url.node)?;
        if let Some(disks) = self.disks {
            let name = format!("{path}.{HOST_DISKS}");
            let list = ListOf(Line, "a list of disks");
            let read = list.read(cx, &name, &disks.node)?;
            cx.resolve(name, list.show(&read), disks.node.place);
            metrics.disks = read.into_iter().map(|(disk, _)| disk).collect();
        }
        Some(metrics)
    }
}

fn refuse(cx: &mut Context<'_>, entry: &Entry, message: &str, why: &str) {
    cx.error("plan::conflict", entry.key_place, message).label(why).help("remove this key");
}

/// Reads the URL of an exporter.
fn read_url(cx: &mut Context<'_>, name: &str, node: &Node) -> Option<HostMetrics> {
    let text = Line.read(cx, name, node)?;
    let Some(metrics) = parse_url(&text) else {
        let message = format!("{} is not the URL of an exporter", code(name));
        cx.error("plan::bad-url", node.place, message)
            .label("expected `http://HOST:PORT/metrics`, without a user")
            .help("run Prometheus's `node_exporter` on the server's host: it listens on port 9100");
        return None;
    };

    cx.resolve(name.to_owned(), Line.show(&text), node.place);
    Some(metrics)
}

fn parse_url(text: &str) -> Option<HostMetrics> {
    let rest = text.strip_prefix(SCHEME)?;
    let path_at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(path_at);
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '@' | '#' | '\\');
    if !authority.chars().all(is_plain) || !path.chars().all(|c| c.is_ascii_graphic() && c != '#') {
        return None;
    }

    // The colons of an address of IPv6 are in brackets.
    let port_at = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
    let host = &authority[..port_at.unwrap_or(authority.len())];
    if host.is_empty() || (host.contains(':') && !host.starts_with('[')) {
        return None;
    }
    let port: u16 = port_at.map_or(Some(80), |at| authority[at + 1..].parse().ok())?;

    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Some(HostMetrics { address: format!("{host}:{port}"), path, disks: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKLOAD: &str = "[workload.insert]\n[build.db]\n";
    const URL: &str = "url = \"postgresql://h/d\"\n";

    #[test]
    fn the_url_of_an_exporter_has_a_host_a_port_and_a_path() {
        let of = |text: &str| parse_url(text).map(|metrics| (metrics.address, metrics.path));
        let pair = |address: &str, path: &str| Some((address.to_owned(), path.to_owned()));
        assert_eq!(of("http://db:9100/metrics"), pair("db:9100", "/metrics"));
        assert_eq!(of("http://db"), pair("db:80", "/"));
        assert_eq!(
            of("http://[fd00::5]:9100/m?collect[]=cpu"),
            pair("[fd00::5]:9100", "/m?collect[]=cpu")
        );
        assert_eq!(of("http://db?x"), pair("db:80", "/?x"));
        for bad in [
            "https://db:9100/metrics",
            "db:9100",
            "http://",
            "http://:9100/",
            "http://user@db/metrics",
            "http://db:x/",
            "http://db:99999/",
            "http://fd00::5:9100/",
            "http://db/a b",
            "http://d b/",
            "http://db/#x",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_build_with_a_url_names_the_exporter_of_its_host() {
        let keys = "host-metrics = \"http://db:9100/metrics\"\nhost-disks = [\"sda\", \"sdb\"]\n";
        let (plan, _) = crate::parse("plan.toml", &format!("{WORKLOAD}{URL}{keys}"), &[]).unwrap();
        let metrics = plan.builds[0].host_metrics.as_ref().unwrap();
        assert_eq!((metrics.address.as_str(), metrics.disks.len()), ("db:9100", 2));

        for (build, said) in [
            (format!("sqlite = \"bundled\"\n{keys}"), "`build.db.host-metrics` needs `url`"),
            (format!("{URL}host-disks = [\"sda\"]\n"), "needs `host-metrics`"),
            (format!("{URL}host-metrics = \"db:9100\"\n"), "is not the URL of an exporter"),
            (format!("{URL}host-metrics = 5\n"), "is an integer, not a string"),
        ] {
            let text = format!("{WORKLOAD}{build}");
            let errors = crate::parse("plan.toml", &text, &[]).unwrap_err();
            let shown = crate::render(&errors, "plan.toml", &text, &[], false);
            assert!(shown.contains(said), "{shown}");
        }
    }
}
