//! Takes one step and tells what it brought to light. No rule is in here: what a failure means is decided elsewhere.

use api::{EndpointIntent, MaasCluster, names};
use decisions::{
    Failure, FailureKind,
    cluster::{Endpoint, Learned, Step},
};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use maas_client::{Error, Id, Reserve, SubnetName, TimeToLive};
use serde_json::{Value, json};

use super::{
    Hands,
    observe::{Observed, confirmed_members, record, records, reservations},
};
use crate::{FIELD_MANAGER, failure, maas::Account};

/// Takes a step. `guard` is the version of the object it was decided on.
pub async fn act(hands: &Hands, observed: &Observed, step: &Step, guard: Option<&str>) -> Result<Learned, Failure> {
    let on_object = ObjectSteps { hands, object: &observed.facts.object, guard };
    let account =
        || observed.account.as_ref().ok_or_else(|| Failure { kind: FailureKind::NoAccess, words: "there is no way to MAAS".to_owned() });
    // The evidence for a step has an end, also while it waits for its turn.
    let until = |end: &Timestamp| account().map(|account| account.client.not_after(hands.clock.moment(*end)));
    match step {
        Step::AddFinalizer => on_object.add_finalizer().await.map(|object| Learned::Object(Box::new(object))),
        Step::Intend(intent) => on_object.write(intent).await.map(|object| Learned::Order(Box::new(object))),
        Step::Settle(intent) => on_object.write(intent).await.map(|object| Learned::Object(Box::new(object))),
        Step::WriteEndpoint { host, port } => {
            let change = json!({"spec": {"controlPlaneEndpoint": {"host": host, "port": port}}});
            on_object.patch(change).await.map(|object| Learned::Object(Box::new(object)))
        }
        Step::RemoveFinalizer => on_object.remove_finalizer().await,
        Step::ListMachines => {
            let found = confirmed_members(hands, &observed.facts).await;
            found.map(Learned::Machines).map_err(|error| failure::of_kubernetes(&error))
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
            let found = reservations(account()?).await;
            found.map(Learned::Reservations).map_err(|error| failure::of_maas(&error))
        }
        Step::ListFree { subnet } => list_free(account()?, subnet).await,
        Step::CreateRecord { name, time_to_live, not_after } => {
            let answer = until(not_after)?.dns_resources().create(name, Some(TimeToLive(*time_to_live)), &[]).await;
            answer.map(|_| Learned::Created).map_err(|error| failure::of_maas(&error))
        }
        Step::WriteRecord { id, time_to_live, addresses, not_after } => {
            let account = account()?;
            let answer = until(not_after)?.dns_resources().update(Id::new(*id), Some(TimeToLive(*time_to_live)), addresses).await;
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
    let subnets = account.client.subnets().list().await.map_err(failed)?;
    let found = subnets.iter().find(|found| found.cidr == subnet || found.name == subnet);
    let words = || format!("MAAS has no subnet {subnet}");
    let found = found.ok_or_else(|| Failure { kind: FailureKind::NotFound, words: words() })?;
    let free = account.client.subnets().unreserved_ip_ranges(&SubnetName::Id(found.id)).await.map_err(failed)?;
    let run = |run: &maas_client::AddressRun| Some((run.start.parse().ok()?, run.end.parse().ok()?));
    Ok(Learned::Free(free.iter().filter_map(run).collect()))
}

/// Changes of the object, each guarded by the version it was decided on.
struct ObjectSteps<'a> {
    hands: &'a Hands,
    object: &'a MaasCluster,
    guard: Option<&'a str>,
}

impl ObjectSteps<'_> {
    async fn send(&self, mut change: Value) -> Result<MaasCluster, kube::Error> {
        if let Some(guard) = self.guard {
            change["metadata"]["resourceVersion"] = json!(guard);
        }
        let api: Api<MaasCluster> = Api::namespaced(self.hands.kubernetes.clone(), &self.object.namespace().unwrap_or_default());
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let object = api.patch(&self.object.name_any(), &parameters, &Patch::Merge(change)).await?;
        self.hands.written.note(&object);
        Ok(object)
    }

    async fn patch(&self, change: Value) -> Result<MaasCluster, Failure> {
        self.send(change).await.map_err(|error| failure::of_kubernetes(&error))
    }

    async fn add_finalizer(&self) -> Result<MaasCluster, Failure> {
        let mut finalizers = self.object.finalizers().to_vec();
        finalizers.push(names::FINALIZER_CLUSTER.to_owned());
        self.patch(json!({"metadata": {"finalizers": finalizers}})).await
    }

    async fn write(&self, intent: &EndpointIntent) -> Result<MaasCluster, Failure> {
        self.patch(json!({"metadata": {"annotations": {names::ENDPOINT: intent.to_annotation()}}})).await
    }

    /// Ours, and that of the Go provider, whose work this was.
    async fn remove_finalizer(&self) -> Result<Learned, Failure> {
        let ours = [names::FINALIZER_CLUSTER, names::LEGACY_CLUSTER_FINALIZER];
        let others: Vec<&String> = self.object.finalizers().iter().filter(|name| !ours.contains(&name.as_str())).collect();
        match self.send(json!({"metadata": {"finalizers": others}})).await {
            Ok(_) => Ok(Learned::ObjectGone),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Learned::ObjectGone),
            Err(error) => Err(failure::of_kubernetes(&error)),
        }
    }
}
