//! Takes one step and tells what it brought to light. No rule is in here: what a failure means is decided elsewhere.

use api::{EndpointIntent, names};
use decisions::{
    Failure, FailureKind,
    cluster::{Endpoint, Learned, Step},
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use maas_client::{Error, Id, Reserve, SubnetName, TimeToLive};
use serde_json::{Value, json};

use super::{
    Hands,
    observe::{Observed, confirmed_members, confirmed_others, record, records, reservations},
};
use crate::{
    failure,
    guarded::{self, remove_finalizers},
    maas::{Account, subnet_called},
};

/// Ours, and that of the Go provider, whose work this was.
const FINALIZERS: [&str; 2] = [names::FINALIZER_CLUSTER, names::LEGACY_CLUSTER_FINALIZER];

/// Takes a step. `guard` is the version of the object it was decided on.
pub async fn act(hands: &Hands, observed: &Observed, step: &Step, guard: Option<&str>) -> Result<Learned, Failure> {
    let object = &observed.facts.object;
    let change = async |change| {
        let changed = guarded::change(&hands.kubernetes, object, guard, change).await.map_err(|error| failure::of_kubernetes(&error))?;
        hands.written.note(&changed);
        Ok::<_, Failure>(Box::new(changed))
    };
    let account =
        || observed.account.as_ref().ok_or_else(|| Failure { kind: FailureKind::NoAccess, words: "there is no way to MAAS".to_owned() });
    // The evidence for a step has an end, also while it waits for its turn.
    let until = |end: &Timestamp| account().map(|account| account.client.not_after(hands.clock.moment(*end)));
    match step {
        Step::AddFinalizer => {
            let finalizers: Vec<&str> = object.finalizers().iter().map(String::as_str).chain([names::FINALIZER_CLUSTER]).collect();
            change(json!({"metadata": {"finalizers": finalizers}})).await.map(Learned::Object)
        }
        Step::Intend(intent) => change(with_intent(intent)).await.map(Learned::Order),
        Step::Settle(intent) => change(with_intent(intent)).await.map(Learned::Object),
        Step::WriteEndpoint { host, port } => {
            change(json!({"spec": {"controlPlaneEndpoint": {"host": host, "port": port}}})).await.map(Learned::Object)
        }
        Step::RemoveFinalizer => {
            let removed = remove_finalizers(&hands.kubernetes, object, guard, &FINALIZERS).await;
            removed.map(|()| Learned::ObjectGone).map_err(|error| failure::of_kubernetes(&error))
        }
        Step::ListMachines => {
            let found = confirmed_members(hands, &observed.facts).await;
            found.map(Learned::Machines).map_err(|error| failure::of_kubernetes(&error))
        }
        Step::ListOthers => {
            let found = confirmed_others(hands, &observed.facts).await;
            found.map(Learned::Others).map_err(|error| failure::of_kubernetes(&error))
        }
        Step::ListRecords => {
            let name = match observed.facts.endpoint() {
                Endpoint::Dns { name, .. } => name,
                Endpoint::Vip | Endpoint::Elsewhere { .. } | Endpoint::Awaited => {
                    observed.facts.intent().and_then(|intent| intent.name).unwrap_or_default()
                }
            };
            Ok(Learned::Records(records(account()?, &name).await))
        }
        Step::ListReservations => {
            let as_of = hands.clock.now();
            let found = reservations(account()?).await;
            found.map(|found| Learned::Reservations(as_of, found)).map_err(|error| failure::of_maas(&error))
        }
        Step::ListFree { subnet } => list_free(account()?, subnet).await,
        Step::CreateRecord { name, time_to_live, not_after } => {
            let answer = until(not_after)?.dns_resources().create(name, Some(TimeToLive(*time_to_live)), &[]).await;
            answer.map(|_| Learned::Created).map_err(|error| failure::of_maas(&error))
        }
        Step::WriteRecord { id, time_to_live, addresses, not_after } => {
            let account = account()?;
            let answer = until(not_after)?.dns_resources().update(Id::new(*id), time_to_live.map(TimeToLive), addresses).await;
            answer.map(|found| Learned::Record(record(account, &found))).map_err(|error| failure::of_maas(&error))
        }
        Step::RemoveRecord { id } => match account()?.client.dns_resources().delete(Id::new(*id)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(Learned::Removed),
            Err(error) => Err(failure::of_maas(&error)),
        },
        Step::ReserveAddress { address, not_after } => {
            let wish = Reserve { ip: Some(*address), ..Reserve::default() };
            let answer = until(not_after)?.ip_addresses().reserve(&wish).await;
            answer.map(|_| Learned::Reserved(*address)).map_err(|error| failure::of_maas(&error))
        }
        Step::FreeAddress { address, not_after } => {
            let answer = until(not_after)?.ip_addresses().release(*address, false).await;
            answer.map(|()| Learned::Freed(*address)).map_err(|error| failure::of_maas(&error))
        }
    }
}

/// What is free in the subnet that a person calls so.
async fn list_free(account: &Account, subnet: &str) -> Result<Learned, Failure> {
    let failed = |error: Error| failure::of_maas(&error);
    let found = subnet_called(&account.client, subnet).await?;
    let free = account.client.subnets().unreserved_ip_ranges(&SubnetName::Id(found.id)).await.map_err(failed)?;
    let run = |run: &maas_client::AddressRun| Some((run.start.parse().ok()?, run.end.parse().ok()?));
    Ok(Learned::Free(free.iter().filter_map(run).collect()))
}

fn with_intent(intent: &EndpointIntent) -> Value {
    json!({"metadata": {"annotations": {names::ENDPOINT: intent.to_annotation()}}})
}
