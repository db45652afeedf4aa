//! The traffic of this process's network namespace with other hosts.

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
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// The interfaces of hardware, real or virtual. A bridge, a bond or a tunnel above them would
    /// count the same packets again. Empty in a container, whose interfaces are virtual: there
    /// all count.
    hardware: Vec<String>,
}

impl Network {
    pub(crate) fn find(proc: &Proc) -> Self {
        let text = proc.text("proc/net/dev").unwrap_or_default();
        let hardware = interfaces(&text)
            .filter(|(name, _)| proc.path(format!("sys/class/net/{name}/device")).exists())
            .map(|(name, _)| name.to_owned())
            .collect();
        Self { hardware }
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
        let traffic =
            proc.optional("proc/net/dev", buffer, |text| parse_traffic(text, is_counted))?;
        if let Some(counts) = traffic.flatten() {
            for (column, count) in TRAFFIC.into_iter().zip(counts) {
                row.set(column, count);
            }
        }

        let retransmits = proc.optional("proc/net/snmp", buffer, parse_retransmits)?;
        row.set(ColumnIndex::TcpRetransmit, retransmits.flatten());
        Ok(())
    }
}
