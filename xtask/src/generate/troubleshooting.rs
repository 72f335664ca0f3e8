//! The page that is looked at when something does not go on: every reason of a condition, what it means and what to do. Used by `generate`.

use std::fmt::Write as _;

use decisions::{cluster, machine, remediation};

use super::Page;

/// The path and the text of the page.
pub fn page() -> Page {
    let mut page = "<!-- Written by `cargo xtask generate` from the rules in the crate `decisions`; changes made here are lost. -->\n\n\
                    # Troubleshooting\n\n\
                    `kubectl get maasmachines,maasclusters,maasremediations` shows the reason; with `--output wide` the message is the last column, with the words of\n\
                    MAAS and what to do. `kubectl describe` shows it for one object, `clusterctl describe cluster NAME --show-conditions all` for a whole cluster.\n"
        .to_owned();
    let of_clusters = [cluster::REASONS, cluster::SHARED_REASONS].concat();
    for (kind, reasons) in [("MaasMachine", machine::Reason::ALL), ("MaasCluster", &of_clusters), ("MaasRemediation", remediation::REASONS)]
    {
        let _ = write!(page, "\n## {kind}\n\n| reason | what it means | what to do |\n|---|---|---|\n");
        let mut sorted: Vec<_> = reasons.iter().collect();
        // What needs somebody comes first.
        sorted.sort_by_key(|reason| (!reason.trouble, reason.name));
        for reason in sorted {
            let _ = writeln!(page, "| `{}` | {} | {} |", reason.name, reason.meaning, reason.remedy);
        }
    }
    ("docs/troubleshooting.md".to_owned(), page)
}
