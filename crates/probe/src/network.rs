//! The traffic of this process' network namespace with other hosts.

use crate::columns::{ColumnIndex, Sample};
use crate::parse::{interfaces, parse_retransmits, parse_traffic};
use crate::{ProbeError, Proc};

/// The columns of the interfaces' counters, in the order of `parse::network::Traffic`.
const TRAFFIC: [ColumnIndex; 4] = [
    ColumnIndex::NetworkReceivedBytes,
    ColumnIndex::NetworkReceivedPackets,
    ColumnIndex::NetworkSentBytes,
    ColumnIndex::NetworkSentPackets,
];

/// The interfaces whose counters are added.
#[derive(Debug)]
pub(crate) struct Network {
    /// The interfaces of hardware, real or virtual. A bridge, a bond or a tunnel above them would
    /// count the same packets again. Empty in a container, whose interfaces are virtual: there
    /// all count.
    hardware: Vec<String>,
}

impl Network {
    pub(crate) fn find(proc: &Proc) -> Self {
        let text = proc.text("proc/net/dev").unwrap_or_default();
        let names = interfaces(&text).map(|(name, _)| name.to_owned());
        let has_device = |name: &String| proc.path(format!("sys/class/net/{name}/device")).exists();
        Self { hardware: names.filter(has_device).collect() }
    }

    pub(crate) fn sample(
        &self,
        proc: &Proc,
        buffer: &mut Vec<u8>,
        row: &mut Sample,
    ) -> Result<(), ProbeError> {
        let is_counted = |name: &str| {
            self.hardware.is_empty() || self.hardware.iter().any(|counted| counted == name)
        };
        let parse = |text: &str| parse_traffic(text, is_counted);
        let traffic = proc.optional("proc/net/dev", buffer, parse)?.flatten();
        for (column, count) in TRAFFIC.into_iter().zip(traffic.into_iter().flatten()) {
            row.set(column, count);
        }
        let retransmits = proc.optional("proc/net/snmp", buffer, parse_retransmits)?;
        row.set(ColumnIndex::TcpRetransmit, retransmits.flatten());
        Ok(())
    }
}
