//! Fixed addresses that servers are given. MAAS leaves them on a server that it takes back, where nobody else can have them: so they are
//! written down before a server gets them, and taken off again when it is nobody's.

use api::LinkedAddress;

use super::{
    draft::Draft,
    plan::{Preparation, Step, StepName},
};
use crate::{Link, LinkMode, Server};

/// Writes down the address that the server is about to be given, unless that was done.
pub(super) fn not_yet_written_down(draft: &Draft<'_>, server: &Server, preparation: &Preparation) -> Option<Step> {
    let Preparation::Link { address: Some(address), .. } = preparation else { return None };
    let linked = LinkedAddress { server: server.system_id.clone(), address: *address };
    let known = draft.facts.intent().is_some_and(|intent| intent.linked.contains(&linked));
    (!known).then(|| draft.intend(move |intent| intent.linked.push(linked)))
}

/// The next step of taking addresses of ours off a server that went back and is nobody's; none when it has none of them, and MAAS's words
/// when it refused to take one off.
pub(super) fn take_off(draft: &Draft<'_>, server: &Server) -> Result<Option<Step>, String> {
    let linked = draft.facts.intent().map(|intent| intent.linked).unwrap_or_default();
    let is_ours = |link: &&Link| {
        let given = |address| linked.contains(&LinkedAddress { server: server.system_id.clone(), address });
        link.mode == LinkMode::Static && link.address.is_some_and(given)
    };
    let found = server.interfaces.iter().find_map(|interface| Some((interface.id, interface.links.iter().find(is_ours)?.id)));
    let Some((interface, link)) = found else { return Ok(None) };
    let failed = draft.facts.failed.as_ref();
    let failed = failed.filter(|failed| failed.step == StepName::Prepare && failed.server.as_ref() == Some(&server.system_id));
    if let Some(failed) = failed.filter(|failed| failed.failure.kind.is_refusal()) {
        return Err(failed.failure.words.clone());
    }
    let Some(not_after) = draft.may_touch_until(server) else { return Ok(Some(draft.intend(|_| ()))) };
    if not_after <= draft.now {
        return Ok(Some(Step::Look { server: server.system_id.clone() }));
    }
    let preparation = Preparation::Unlink { interface, link };
    Ok(Some(Step::Prepare { server: server.system_id.clone(), preparation, not_after }))
}
