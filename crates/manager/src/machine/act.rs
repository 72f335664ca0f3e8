//! Takes one step and tells what it brought to light. No rule is in here: what a failure means is decided elsewhere.

use std::{collections::BTreeMap, fmt};

use api::{
    Erase, Intent, MaasMachine,
    cluster_api::{IpAddress, IpAddressClaim},
    names,
};
use decisions::{
    Failure, FailureKind, Lookup,
    machine::{Allocation, Candidate, Constraints, Deployment, Learned, Preparation, Step},
};
use jiff::Timestamp;
use kube::{Api, Resource, ResourceExt as _, core::NamespaceResourceScope};
use maas_client::{
    Allocate, Client, Deploy, LinkMode, LinkSubnet, MachineFilter, MachineSettings, MachineStatus, MebiBytes, Release, SystemId,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Hands,
    observe::Observed,
    servers::{lookup, power, server},
};
use crate::{
    ObjectKey, failure,
    guarded::{self, remove_finalizers},
    maas::{Account, subnet_called},
};

/// Ours, and those of the Go provider, whose work this was.
const FINALIZERS: [&str; 3] = [names::FINALIZER_MACHINE, names::LEGACY_MACHINE_FINALIZER, names::LEGACY_EVACUATION_FINALIZER];

/// Takes a step. `guard` is the version of the object it was decided on.
pub async fn act(hands: &Hands, observed: &Observed, step: &Step, guard: Option<&str>) -> Result<Learned, Failure> {
    let object = &observed.facts.object;
    let account =
        || observed.account.as_ref().ok_or_else(|| Failure { kind: FailureKind::NoAccess, words: "there is no way to MAAS".to_owned() });
    // The evidence for a step has an end, also while it waits for its turn.
    let until = |end: &Timestamp| account().map(|account| account.client.not_after(hands.clock.moment(*end)));
    match step {
        Step::Intend { intent, with_finalizer } => {
            hands.orders.intends(object);
            let intended = change(hands, object, guard, intend(object, intent, *with_finalizer)).await?;
            Ok(Learned::Intent(Box::new(intended)))
        }
        Step::Record { server, intent } => patch(hands, object, guard, with_intent(intent, &json!({"systemID": server}))).await,
        Step::Forget { server, intent } => {
            let recorded = object.spec.system_id.as_deref() == Some(server.as_str());
            let spec = if recorded { json!({"systemID": null}) } else { json!({}) };
            patch(hands, object, guard, with_intent(intent, &spec)).await
        }
        Step::Provision { provider_id } => patch(hands, object, guard, json!({"spec": {"providerID": provider_id.to_string()}})).await,
        Step::RemoveFinalizer => {
            let removed = remove_finalizers(&hands.kubernetes, object, guard, &FINALIZERS).await;
            removed.map(|()| Learned::ObjectGone).map_err(|error| failure::of_kubernetes(&error))
        }
        Step::LookForClaim => {
            let claim = read::<IpAddressClaim>(hands, object, &object.name_any()).await?;
            Ok(Learned::AddressClaim(Box::new(claim)))
        }
        Step::LookForAddress { address } => {
            let found = read::<IpAddress>(hands, object, address).await?;
            Ok(Learned::Pooled(address.clone(), Box::new(found)))
        }
        Step::HoldAddress(address) => hold(hands, address).await,
        Step::FreeAddress(address) => {
            let version = address.resource_version();
            let freed = remove_finalizers(&hands.kubernetes, &**address, version.as_deref(), &[names::FINALIZER_ADDRESS]).await;
            freed.map_err(|error| failure::of_kubernetes(&error))?;
            Ok(Learned::Pooled(address.name_any(), Box::new(Lookup::Missing)))
        }
        Step::NameNode { node, provider_id } => hands.workload.name_node(&cluster_of_node(observed, node)?, node, provider_id).await,
        Step::RemoveNode { node, provider_id } => {
            hands.workload.remove_node(&cluster_of_node(observed, node)?, node, provider_id.as_deref()).await
        }
        Step::ListCandidates(constraints) => candidates(account()?, constraints).await,
        Step::Allocate(allocation) => allocate(hands, &until(&allocation.not_after)?, allocation).await,
        Step::Mark { server, marks, not_after } => {
            let (client, asked) = (until(not_after)?, hands.clock.now());
            let answer = client.machine(&id(server)).set_workload_annotations(&marks.annotations()).await;
            as_of(asked, answer)
        }
        Step::Look { server } => {
            // As old as the question: the answer may have been long under way.
            let asked = hands.clock.now();
            let seen = lookup(account()?.client.machine(&id(server)).read().await, asked);
            Ok(Learned::Looked(server.clone(), Box::new(seen)))
        }
        Step::Prepare { server, preparation, not_after } => prepare(hands, &until(not_after)?, &id(server), preparation).await,
        Step::Deploy(deployment) => deploy(hands, &until(&deployment.not_after)?, deployment, observed).await,
        Step::Release { server, erase, comment, not_after } => {
            let answer = until(not_after)?.machine(&id(server)).release(&release(*erase, comment)).await;
            // What the answer shows of its owner is what was, not what is.
            answer.map(|_| Learned::Changed(server.clone())).map_err(|error| failure::of_maas(&error))
        }
        Step::QueryPower { server } => {
            let answer = account()?.client.machine(&id(server)).query_power_state().await;
            answer.map(|state| Learned::Power(power(&state))).map_err(|error| failure::of_maas(&error))
        }
        Step::PowerOn { server, comment, not_after } => {
            let (client, asked) = (until(not_after)?, hands.clock.now());
            let machine = client.machine(&id(server)).power_on(Some(comment)).await.map_err(|error| failure::of_maas(&error))?;
            Ok(Learned::PoweredOn(Box::new(self::server(&machine, asked))))
        }
    }
}

/// Reads an object of another kind in the object's namespace.
async fn read<K>(hands: &Hands, object: &MaasMachine, name: &str) -> Result<Lookup<K>, Failure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + fmt::Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(hands.kubernetes.clone(), &object.namespace().unwrap_or_default());
    let found = api.get_opt(name).await.map_err(|error| failure::of_kubernetes(&error))?;
    Ok(found.map_or(Lookup::Missing, Lookup::Found))
}

/// Puts our finalizer on an address, if it is still the one that was looked at.
async fn hold(hands: &Hands, address: &IpAddress) -> Result<Learned, Failure> {
    let mut finalizers = address.finalizers().to_vec();
    finalizers.push(names::FINALIZER_ADDRESS.to_owned());
    let change = json!({"metadata": {"finalizers": finalizers}});
    match guarded::change(&hands.kubernetes, address, address.resource_version().as_deref(), change).await {
        Ok(held) => Ok(Learned::Pooled(held.name_any(), Box::new(Lookup::Found(held)))),
        Err(error @ kube::Error::Api(_)) => Err(failure::of_kubernetes(&error)),
        // Without an answer of the API server it may still be done.
        Err(error) => Err(Failure { kind: FailureKind::Unknown, ..failure::of_kubernetes(&error) }),
    }
}

fn id(server: &api::SystemId) -> SystemId {
    server.as_str().into()
}

/// What an answer shows is as old as the question: MAAS may have taken minutes over it.
fn as_of(asked: Timestamp, answer: Result<maas_client::Machine, maas_client::Error>) -> Result<Learned, Failure> {
    let machine = answer.map_err(|error| failure::of_maas(&error))?;
    Ok(Learned::Server(Box::new(server(&machine, asked))))
}

fn cluster_of_node(observed: &Observed, node: &str) -> Result<ObjectKey, Failure> {
    let words = || format!("the Cluster of node {node} is gone");
    observed.facts.cluster.as_ref().map(ObjectKey::of).ok_or_else(|| Failure { kind: FailureKind::Stale, words: words() })
}

fn with_intent(intent: &Intent, spec: &Value) -> Value {
    json!({"metadata": {"annotations": {names::CLAIM: intent.to_annotation()}}, "spec": spec})
}

/// The change that writes an intent, and with it the finalizer if it is not there.
fn intend(object: &MaasMachine, intent: &Intent, with_finalizer: bool) -> Value {
    let mut change = with_intent(intent, &json!({}));
    let mut finalizers = object.finalizers().to_vec();
    if with_finalizer && !finalizers.iter().any(|name| name == names::FINALIZER_MACHINE) {
        finalizers.push(names::FINALIZER_MACHINE.to_owned());
        change["metadata"]["finalizers"] = json!(finalizers);
    }
    change
}

async fn change(hands: &Hands, object: &MaasMachine, guard: Option<&str>, change: Value) -> Result<MaasMachine, Failure> {
    let changed = guarded::change(&hands.kubernetes, object, guard, change).await.map_err(|error| failure::of_kubernetes(&error))?;
    hands.written.note(&changed);
    Ok(changed)
}

async fn patch(hands: &Hands, object: &MaasMachine, guard: Option<&str>, patch: Value) -> Result<Learned, Failure> {
    change(hands, object, guard, patch).await.map(|object| Learned::Object(Box::new(object)))
}

async fn candidates(account: &Account, wanted: &Constraints) -> Result<Learned, Failure> {
    let mut filter = MachineFilter::new().status(MachineStatus::Ready).cpu_count(wanted.cpu).memory(MebiBytes(wanted.memory.into()));
    for tag in &wanted.tags {
        filter = filter.tag(tag);
    }
    for tag in &wanted.not_tags {
        filter = filter.not_tag(tag);
    }
    let Constraints { zone, pool, architecture, storage, interfaces, .. } = wanted;
    filter = zone.iter().fold(filter, |filter, zone| filter.zone(zone));
    filter = pool.iter().fold(filter, |filter, pool| filter.pool(pool));
    filter = architecture.iter().fold(filter, |filter, architecture| filter.architecture(architecture));
    filter = storage.iter().fold(filter, |filter, storage| filter.storage(storage));
    filter = interfaces.iter().fold(filter, |filter, interfaces| filter.interfaces(interfaces));
    let found = account.client.machines().list(&filter).await.map_err(|error| failure::of_maas(&error))?;
    let candidate =
        |machine: &maas_client::Machine| Candidate { system_id: machine.system_id.as_str().into(), virtual_machine: machine.pod.is_some() };
    Ok(Learned::Candidates(found.iter().map(candidate).collect()))
}

async fn allocate(hands: &Hands, client: &Client, allocation: &Allocation) -> Result<Learned, Failure> {
    let Allocation { constraints: wanted, servers, agent_name, comment, .. } = allocation;
    let mut request = Allocate::new().cpu_count(wanted.cpu).memory(MebiBytes(wanted.memory.into())).agent_name(agent_name).comment(comment);
    if servers.is_empty() {
        // Otherwise MAAS would make a virtual machine when nothing fits.
        request = request.not_pod_type("lxd").not_pod_type("virsh");
    }
    request = servers.iter().fold(request, |request, server| request.system_id(&id(server)));
    request = wanted.tags.iter().fold(request, |request, tag| request.tag(tag));
    request = wanted.not_tags.iter().fold(request, |request, tag| request.not_tag(tag));
    let Constraints { zone, pool, architecture, storage, interfaces, .. } = wanted;
    request = zone.iter().fold(request, |request, zone| request.zone(zone));
    request = pool.iter().fold(request, |request, pool| request.pool(pool));
    request = architecture.iter().fold(request, |request, architecture| request.architecture(architecture));
    request = storage.iter().fold(request, |request, storage| request.storage(storage));
    request = interfaces.iter().fold(request, |request, interfaces| request.interfaces(interfaces));
    let asked = hands.clock.now();
    let machine = client.machines().allocate(&request).await.map_err(|error| failure::of_maas(&error))?;
    Ok(Learned::Allocated(Box::new(server(&machine, asked))))
}

async fn prepare(hands: &Hands, client: &Client, machine: &SystemId, preparation: &Preparation) -> Result<Learned, Failure> {
    let failed = |error: maas_client::Error| failure::of_maas(&error);
    let learned = Learned::Changed(machine.as_str().into());
    match preparation {
        Preparation::SwapOff => {
            let settings = MachineSettings { swap_size: Some(0), ..MachineSettings::default() };
            let asked = hands.clock.now();
            as_of(asked, client.machine(machine).update(&settings).await)
        }
        Preparation::Unlink { interface, link } => {
            let interfaces = client.interfaces(machine);
            interfaces.unlink_subnet(maas_client::Id::new(*interface), maas_client::Id::new(*link)).await.map_err(failed)?;
            Ok(learned)
        }
        Preparation::Link { interface, subnet, mode, address } => {
            let subnet = subnet_called(client, subnet).await?.id;
            let mode = match mode {
                decisions::LinkMode::Auto => LinkMode::Auto,
                decisions::LinkMode::Static => LinkMode::Static,
                decisions::LinkMode::Dhcp => LinkMode::Dhcp,
                decisions::LinkMode::LinkUp => LinkMode::LinkUp,
                decisions::LinkMode::Other(other) => LinkMode::Other(other.clone()),
            };
            let link = LinkSubnet { mode, subnet: Some(subnet), ip_address: *address, ..LinkSubnet::default() };
            client.interfaces(machine).link_subnet(maas_client::Id::new(*interface), &link).await.map_err(failed)?;
            Ok(learned)
        }
    }
}

async fn deploy(hands: &Hands, client: &Client, deployment: &Deployment, observed: &Observed) -> Result<Learned, Failure> {
    let Deployment { server, image, with_user_data, in_memory, hwe_kernel, hardware_sync, agent_name, comment, .. } = deployment;
    let request = Deploy {
        distro_series: Some(format!("{}/{}", image.os, image.series)),
        user_data: observed.user_data.clone().filter(|_| *with_user_data),
        hwe_kernel: hwe_kernel.clone(),
        agent_name: Some(agent_name.clone()),
        comment: Some(comment.clone()),
        ephemeral_deploy: in_memory.then_some(true),
        enable_hw_sync: hardware_sync.then_some(true),
        ..Deploy::default()
    };
    let asked = hands.clock.now();
    as_of(asked, client.machine(&id(server)).deploy(&request).await)
}

fn release(erase: Erase, comment: &str) -> Release {
    let plain = Release { comment: Some(comment.to_owned()), script_parameters: BTreeMap::new(), ..Release::default() };
    match erase {
        Erase::None => plain,
        Erase::Quick => Release { erase: true, quick_erase: true, ..plain },
        Erase::Secure => Release { erase: true, secure_erase: true, ..plain },
        Erase::Full => Release { erase: true, ..plain },
    }
}
