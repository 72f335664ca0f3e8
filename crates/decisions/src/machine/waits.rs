//! What has to be there before a server is asked for or deployed.

use super::{
    draft::Draft,
    facts::{Bootstrap, Facts},
    plan::{LookAgain, Plan},
    reason::Reason,
};

/// Django's limit for the body of a request, which MAAS does not raise, less what the other parameters take.
const LARGEST_USER_DATA: usize = 2_621_440 - 4096;

/// What is missing, in the words of a condition.
pub(super) fn missing(facts: &Facts) -> Option<(Reason, String)> {
    let cluster_is_ready = facts.cluster.as_ref().is_some_and(|cluster| cluster.infrastructure_provisioned);
    if !cluster_is_ready {
        return Some((Reason::WAITING_FOR_CLUSTER, "waiting for the infrastructure of the Cluster".to_owned()));
    }
    match &facts.bootstrap {
        Bootstrap::Pending => return Some((Reason::WAITING_FOR_BOOTSTRAP, "waiting for the Machine's bootstrap data".to_owned())),
        Bootstrap::Unreadable { words } => {
            let reason = Reason::BOOTSTRAP_UNREADABLE;
            return Some((reason, reason.message(&format!("the bootstrap data cannot be read: {words}"))));
        }
        Bootstrap::Present { encoded_bytes } if *encoded_bytes > LARGEST_USER_DATA => {
            let message = format!(
                "the bootstrap data takes {encoded_bytes} bytes as MAAS gets it, and MAAS takes {LARGEST_USER_DATA}. {}",
                Reason::BOOTSTRAP_TOO_LARGE.remedy
            );
            return Some((Reason::BOOTSTRAP_TOO_LARGE, message));
        }
        Bootstrap::NotWanted | Bootstrap::Present { .. } => {}
    }
    let wanted = facts.object.spec.static_ip.as_ref().filter(|wanted| wanted.ip.is_none())?;
    if let Some(words) = facts.address_refused.as_ref().filter(|_| wanted.pool_ref.is_some()) {
        return Some((Reason::ADDRESS_NOT_CLAIMED, Reason::ADDRESS_NOT_CLAIMED.message(words)));
    }
    let message = match &wanted.pool_ref {
        Some(pool) => format!(
            "waiting for an address of {} {}: IPAddressClaim {} is not fulfilled yet",
            pool.kind,
            pool.name,
            facts.object.metadata.name.as_deref().unwrap_or_default()
        ),
        None => "waiting for an address in spec.staticIP.ip".to_owned(),
    };
    Some((Reason::WAITING_FOR_STATIC_IP, message))
}

impl Draft<'_> {
    /// Most of what is missing announces itself; Secrets are not watched.
    pub(super) fn wait_for_what_is_missing(self) -> Plan {
        let in_secret = [Reason::BOOTSTRAP_UNREADABLE, Reason::BOOTSTRAP_TOO_LARGE];
        let announces_itself = missing(self.facts).is_none_or(|(reason, _)| !in_secret.contains(&reason));
        self.wait(if announces_itself { LookAgain::OnChange } else { LookAgain::AfterBackoff })
    }

    /// Shows what is missing, if anything is.
    pub(super) fn shows_what_is_missing(&mut self) -> bool {
        let missing = missing(self.facts);
        if let Some((reason, message)) = &missing {
            self.not_deployed(*reason, message.clone());
        }
        missing.is_some()
    }
}
