//! What people and Cluster API do in a run about machines, and what happens to servers from outside.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use maas_emulator::{
    Fault,
    faults::{Happening, Incident, MachineFault, MachineHarm},
    world::status::Status,
};
use manager::Jitter;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{pool, scenario::Story, world::World};

pub(super) const NAMESPACE: &str = "rack";
/// In some stories it cannot be deployed. It is the first that MAAS gives.
const BAD_SERVER: &str = "free-01";

fn is_provisioned(object: &Value) -> bool {
    object["status"]["initialization"]["provisioned"] == Value::Bool(true)
}

fn has_power(world: &World, id: &str) -> bool {
    world.emulator.world(|world| world.all_machines().any(|machine| machine.system_id == id && machine.powered))
}

fn hostname(world: &World, id: &str) -> Option<String> {
    world.emulator.world(|world| world.all_machines().find(|machine| machine.system_id == id).map(|machine| machine.hostname.clone()))
}

/// Whether the node of every object's server has that object's provider id.
fn nodes_are_named(world: &World, objects: &[Value]) -> bool {
    let nodes = world.workload.objects("nodes");
    objects.iter().all(|object| {
        let name = object["spec"]["systemID"].as_str().and_then(|id| hostname(world, id));
        let node = nodes.iter().find(|node| node["metadata"]["name"].as_str() == name.as_deref());
        node.is_some_and(|node| node["spec"]["providerID"] == object["spec"]["providerID"])
    })
}

/// Everybody but the controllers: they ask for machines, wait, change their minds and break things.
pub(super) struct People<'a> {
    world: &'a World,
    client: kube::Client,
    seed: u64,
}

impl<'a> People<'a> {
    pub fn new(world: &'a World, seed: u64) -> Self {
        Self { world, client: world.people(), seed }
    }

    fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
    }

    fn maas_machines(&self) -> Api<DynamicObject> {
        self.api("infrastructure.cluster.x-k8s.io", "v1beta1", "MaasMachine")
    }

    fn clusters(&self) -> Api<DynamicObject> {
        self.api("cluster.x-k8s.io", "v1beta2", "Cluster")
    }

    async fn create(&self, api: &Api<DynamicObject>, object: Value, status: Option<Value>) {
        let object: DynamicObject = serde_json::from_value(object).expect("the explorer's objects are well-formed");
        let name = object.metadata.name.clone().unwrap_or_default();
        api.create(&PostParams::default(), &object).await.expect("people can create objects");
        if let Some(status) = status {
            api.patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({"status": status})))
                .await
                .expect("Cluster API can write a status");
        }
    }

    pub async fn prepare(&self, story: Story) {
        for (name, whose) in [("same-user", "held by somebody of our user"), ("other-user", "another user's")] {
            let id = self.world.emulator.world(|world| {
                world.all_machines().find(|machine| machine.hostname == name).map(|machine| machine.system_id.clone()).unwrap_or_default()
            });
            self.world.witness.is_foreign(&id, whose);
        }
        if matches!(story, Story::BadServer | Story::Wired | Story::JoinedEarly) || (story == Story::Pooled && !self.seed.is_multiple_of(2))
        {
            let harm = MachineHarm::FailDeploy("no disk".to_owned());
            let fault = MachineFault { machine: Some(BAD_SERVER.to_owned()), times: None, harm };
            self.world.emulator.inject(Fault::Machine(fault)).expect("the bad server exists");
        }
        let template = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "MaasMachineTemplate", "metadata": {"name": "any"},
            "spec": {"template": {"spec": {"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy"}}}});
        self.create(&self.api("infrastructure.cluster.x-k8s.io", "v1beta1", "MaasMachineTemplate"), template, None).await;
        let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}});
        let system: Namespace = serde_json::from_value(system).expect("a namespace is well-formed");
        Api::all(self.client.clone()).create(&PostParams::default(), &system).await.expect("people can create namespaces");
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "one"},
            "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasCluster", "name": "one"}}});
        self.create(&self.clusters(), cluster, Some(json!({"initialization": {"infrastructureProvisioned": true}}))).await;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "boot"}, "data": {"value": "I2Nsb3VkLWNvbmZpZwo="}});
        self.create(&self.api("", "v1", "Secret"), secret, None).await;
        if matches!(story, Story::Joined | Story::JoinedEarly) {
            let kubeconfig =
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one-kubeconfig"}, "data": {"value": "e30="}});
            self.create(&self.api("", "v1", "Secret"), kubeconfig, None).await;
            let namespaces: Api<Namespace> = Api::all(self.world.workload.client("people"));
            namespaces.create(&PostParams::default(), &system).await.expect("people can create namespaces");
        }
        for name in ["a", "b"] {
            self.want_machine(name, story, false).await;
        }
        if story == Story::Pooled {
            let claim = json!({"apiVersion": format!("{}/v1beta2", pool::GROUP), "kind": "IPAddressClaim", "metadata": {"name": "c"},
                "spec": {"poolRef": pool::reference()}});
            self.create(&self.api(pool::GROUP, "v1beta2", "IPAddressClaim"), claim, None).await;
            self.want_machine("c", story, false).await;
        }
    }

    /// Wants a machine, paused by its own annotation or not.
    async fn want_machine(&self, name: &str, story: Story, paused: bool) {
        let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": name},
            "spec": {"clusterName": "one", "bootstrap": {"dataSecretName": "boot"},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasMachine", "name": name}}});
        self.create(&self.api("cluster.x-k8s.io", "v1beta2", "Machine"), machine, None).await;
        self.want_server(name, story, paused).await;
    }

    /// The part of it that is ours.
    async fn want_server(&self, name: &str, story: Story, paused: bool) {
        let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": "u"}]);
        let mut ours = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "MaasMachine",
            "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "one"}, "ownerReferences": owner},
            "spec": {"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy", "provisioning": {"attempts": 20}}});
        if story == Story::Wired {
            let address = format!("10.30.0.{}", 200 + name.bytes().map(u32::from).sum::<u32>() % 50);
            ours["spec"]["networkInterfaces"] = json!([{"name": "eth0", "subnet": "racks", "mode": "static", "ip": address}]);
        }
        if story == Story::Pooled {
            ours["spec"]["staticIP"] = json!({"poolRef": pool::reference()});
        }
        if paused {
            ours["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
        }
        self.create(&self.maas_machines(), ours, None).await;
    }

    pub async fn live(&self, story: Story) {
        match story {
            Story::DeletedEarly => {
                let moment = Jitter::seeded(self.seed).draw("deleted", 0) % 40_000;
                sleep(Duration::from_millis(moment)).await;
            }
            Story::Namesake => {
                self.namesake().await;
                self.wait_until_provisioned(2).await;
            }
            Story::TakenAway => {
                self.wait_until_provisioned(2).await;
                self.take_away();
                sleep(Duration::from_mins(5)).await;
            }
            Story::Paused => {
                let moment = Jitter::seeded(self.seed).draw("paused", 0) % 60_000;
                sleep(Duration::from_millis(moment)).await;
                self.pause(true).await;
                // What was under way when it was paused may end first.
                sleep(Duration::from_mins(2)).await;
                self.want_machine("c", story, !self.pauses_the_cluster()).await;
                self.delete("a").await;
                self.delete("b").await;
                sleep(Duration::from_mins(3)).await;
                self.pause(false).await;
                sleep(Duration::from_millis(Jitter::seeded(self.seed).draw("deleted", 0) % 40_000)).await;
            }
            Story::Scarce => self.one_waits_for_the_other().await,
            Story::GoneWrong => {
                self.wait_until_provisioned(2).await;
                self.goes_wrong();
                sleep(Duration::from_mins(5)).await;
            }
            Story::PowerLost => {
                self.wait_until_provisioned(2).await;
                let lost = self.lose_power();
                self.wait("the servers have power again", |world, _| lost.iter().all(|id| has_power(world, id))).await;
                sleep(Duration::from_mins(4)).await;
                self.world.witness.all_have_one_server();
            }
            Story::Joined => {
                self.wait_until_provisioned(2).await;
                self.join().await;
                self.wait("the nodes know which machines they are", nodes_are_named).await;
                sleep(Duration::from_mins(4)).await;
                self.wait("they still know it", nodes_are_named).await;
                self.world.witness.all_have_one_server();
            }
            Story::JoinedEarly => {
                self.joins_early().await;
                self.wait_until_provisioned(2).await;
                sleep(Duration::from_mins(4)).await;
                self.world.witness.all_have_one_server();
            }
            Story::Pooled => {
                self.comes_back_under_its_name().await;
                sleep(Duration::from_mins(4)).await;
                self.world.witness.all_have_one_server();
                self.world.witness.all_have_their_claimed_address();
            }
            Story::Plain | Story::TwoLeaders | Story::BadServer | Story::Wired => {
                self.wait_until_provisioned(2).await;
                sleep(Duration::from_mins(4)).await;
                self.world.witness.all_have_one_server();
            }
        }
        self.delete_all().await;
        self.wait_until_gone().await;
        // What is late comes now.
        sleep(Duration::from_mins(3)).await;
        self.world.witness.everything_was_returned();
        if story == Story::Pooled {
            self.world.witness.only_the_persons_claim_is_left();
        }
    }

    async fn wait_until_provisioned(&self, wanted: usize) {
        self.wait("its machines are provisioned", |_, objects| objects.iter().filter(|object| is_provisioned(object)).count() >= wanted)
            .await;
    }

    async fn wait_until_gone(&self) {
        self.wait("everything is gone", |_, objects| objects.is_empty()).await;
    }

    async fn wait(&self, what: &str, is_true: impl Fn(&World, &[Value]) -> bool) {
        let began = Instant::now();
        loop {
            let objects = self.world.server.objects("maasmachines");
            if is_true(self.world, &objects) {
                return;
            }
            if began.elapsed() > Duration::from_mins(90) {
                let shown: Vec<String> =
                    objects.iter().map(|object| format!("{} {}", object["spec"], object["status"]["conditions"])).collect();
                self.world.witness.violated(format!("after 90 minutes it is not true that {what}: {shown:#?}"));
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// One goes while it still waits, or when it has everything, as the seed has it, and is wanted again as soon as it is gone: the claim of
    /// the first may be there longer.
    async fn comes_back_under_its_name(&self) {
        let moment = Jitter::seeded(self.seed).draw("deleted", 0) % 80_000;
        if moment < 40_000 {
            sleep(Duration::from_millis(moment)).await;
        } else {
            self.wait_until_provisioned(2).await;
        }
        self.delete("a").await;
        let is_there = |object: &Value| object["metadata"]["name"] == "a";
        self.wait("the first one is gone", |_, objects| !objects.iter().any(is_there)).await;
        self.want_server("a", Story::Pooled, false).await;
        self.wait_until_provisioned(2).await;
    }

    /// The one that got the only server goes; then the other gets it.
    async fn one_waits_for_the_other(&self) {
        self.wait_until_provisioned(1).await;
        sleep(Duration::from_mins(3)).await;
        let objects = self.world.server.objects("maasmachines");
        let (served, waiting): (Vec<&Value>, Vec<&Value>) = objects.iter().partition(|object| is_provisioned(object));
        let ([served], [waiting]) = (served.as_slice(), waiting.as_slice()) else {
            self.world.witness.violated(format!("{} objects have the only server", served.len()));
            return;
        };
        if !waiting["spec"]["systemID"].is_null() {
            self.world
                .witness
                .violated(format!("{} has server {} although it waits", waiting["metadata"]["name"], waiting["spec"]["systemID"]));
        }
        self.delete(served["metadata"]["name"].as_str().unwrap_or_default()).await;
        let name = waiting["metadata"]["name"].clone();
        let is_served = |object: &Value| object["metadata"]["name"] == name && is_provisioned(object);
        self.wait("the other one is provisioned", |_, objects| objects.iter().any(is_served)).await;
        sleep(Duration::from_mins(4)).await;
        self.world.witness.all_have_one_server();
    }

    /// The servers become nodes.
    async fn join(&self) {
        let nodes: Api<Node> = Api::all(self.world.workload.client("people"));
        for id in self.recorded() {
            let metadata = kube::core::ObjectMeta { name: hostname(self.world, &id), ..kube::core::ObjectMeta::default() };
            nodes.create(&PostParams::default(), &Node { metadata, ..Node::default() }).await.expect("a node can join");
        }
    }

    /// The server that will fail becomes a node as soon as it is known where it is, unless nobody got it.
    async fn joins_early(&self) {
        let addresses = |objects: &[Value]| {
            let installed = |object: &&Value| object["status"]["hostname"] == BAD_SERVER && object["status"]["phase"] == "Deploying";
            let found = objects.iter().find(installed).map(|object| object["status"]["addresses"].clone());
            found.filter(|addresses| addresses.as_array().is_some_and(|all| !all.is_empty()))
        };
        let all_serve = |objects: &[Value]| objects.iter().all(is_provisioned);
        self.wait("the bad server is installed, or not needed", |_, objects| all_serve(objects) || addresses(objects).is_some()).await;
        let Some(addresses) = addresses(&self.world.server.objects("maasmachines")) else { return };
        let nodes: Api<Node> = Api::all(self.world.workload.client("people"));
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": BAD_SERVER}});
        let node: Node = serde_json::from_value(node).expect("a node is well-formed");
        nodes.create(&PostParams::default(), &node).await.expect("a node can join");
        let place = Patch::Merge(json!({"status": {"addresses": addresses}}));
        nodes.patch_status(BAD_SERVER, &PatchParams::default(), &place).await.expect("a node can say where it is");
    }

    /// All servers that are recorded.
    fn recorded(&self) -> Vec<String> {
        let objects = self.world.server.objects("maasmachines");
        objects.iter().filter_map(|object| object["spec"]["systemID"].as_str().map(str::to_owned)).collect()
    }

    fn happens(&self, id: &str, what: Happening) {
        let incident = Incident { after_seconds: 0.0, machine: id.to_owned(), what };
        self.world.emulator.inject(Fault::Incident(incident)).expect("a recorded server exists");
    }

    fn lose_power(&self) -> Vec<String> {
        let servers = self.recorded();
        for id in &servers {
            self.happens(id, Happening::PowerLoss);
        }
        servers
    }

    /// Something happens to a server that was handed over, as the seed has it.
    fn goes_wrong(&self) {
        let Some(id) = self.recorded().into_iter().next() else { return };
        let what = Jitter::seeded(self.seed).draw("goes wrong", 0) % 3;
        if what < 2 {
            self.world.witness.is_released_by_hand(&id);
        }
        match what {
            0 => self.happens(&id, Happening::Released),
            1 => self.happens(&id, Happening::Deleted),
            _ => self.world.emulator.world(|world| {
                if let Some(machine) = world.machine_id(&id).and_then(|id| world.machines.get_mut(id)) {
                    machine.status = Status::FailedDeployment;
                }
            }),
        }
    }

    async fn delete_all(&self) {
        for name in ["a", "b", "c"] {
            self.delete(name).await;
        }
    }

    /// It may be gone.
    async fn delete(&self, name: &str) {
        drop(self.maas_machines().delete(name, &DeleteParams::default()).await);
    }

    fn pauses_the_cluster(&self) -> bool {
        self.seed.is_multiple_of(2)
    }

    /// The whole cluster, or each object by itself, as the seed has it.
    async fn pause(&self, paused: bool) {
        self.world.witness.paused(paused);
        if self.pauses_the_cluster() {
            let change = Patch::Merge(json!({"spec": {"paused": paused}}));
            self.clusters().patch("one", &PatchParams::default(), &change).await.expect("people can pause a cluster");
            return;
        }
        let value = if paused { json!("") } else { Value::Null };
        let change = Patch::Merge(json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}}));
        for name in ["a", "b", "c"] {
            // It may be gone.
            drop(self.maas_machines().patch(name, &PatchParams::default(), &change).await);
        }
    }

    /// As soon as an object has a claim, somebody else's server gets it as its agent name, with marks of another object.
    async fn namesake(&self) {
        let claim = loop {
            let objects = self.world.server.objects("maasmachines");
            let claims = objects.iter().filter_map(|object| object["metadata"]["annotations"]["metalshift.io/claim"].as_str());
            if let Some(intent) = claims.into_iter().find_map(|text| serde_json::from_str::<Value>(text).ok()) {
                break intent["claim"].as_str().unwrap_or_default().to_owned();
            }
            sleep(Duration::from_millis(1)).await;
        };
        self.world.emulator.world(|world| {
            let id = world.all_machines().find(|machine| machine.hostname == "same-user").map(|machine| machine.id);
            if let Some(machine) = id.and_then(|id| world.machines.get_mut(id)) {
                machine.agent_name = claim;
                machine.annotations.insert("metalshift-claim".to_owned(), "ms-somebody".to_owned());
            }
        });
    }

    /// Somebody releases a server of ours by hand and takes it for something else, with the same user.
    fn take_away(&self) {
        let objects = self.world.server.objects("maasmachines");
        let Some(id) = objects.iter().find_map(|object| object["spec"]["systemID"].as_str()).map(str::to_owned) else { return };
        self.world.emulator.world(|world| {
            if let Some(machine) = world.machine_id(&id).and_then(|id| world.machines.get_mut(id)) {
                "somebody".clone_into(&mut machine.agent_name);
                machine.annotations.clear();
            }
        });
        self.world.witness.is_foreign(&id, "somebody's who took it over by hand");
    }
}
