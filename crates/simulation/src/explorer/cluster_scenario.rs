//! One run about a cluster: its name or its address is made, leads to machines that come, fail and go, and is removed, while things go
//! wrong. The machines are written by people as their controller would leave them, so that everything is about the cluster.

use std::time::Duration;

use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use manager::{Jitter, cluster, machine};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    dns_witness::{FOREIGN_ADDRESSES, FOREIGN_NAME},
    trouble::Troubles,
    world::{Outcome, World},
};
use crate::Faults;

const NAMESPACE: &str = "rack";

const FLEET: &str = "
domains: [{name: maas}]
subnets: [{id: 1, cidr: 10.30.0.0/24, name: racks}]
zones: [{name: az1}]
machines: [{hostname: m1, zone: az1}]
users:
  - {name: admin, superuser: true, keys: [{key: \"emulatorconsumer00:emulatortokenkey00:emulatortokensecret0000000000000\"}]}
";

/// What happens to the cluster beside the troubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterStory {
    /// A name, machines that come, lose their power together, and go.
    Dns,
    /// The same by two processes at the same time, with caches that lag.
    TwoLeaders,
    /// The same with a name that a person has made before and has something in.
    Given,
    /// A reserved address.
    Vip,
    /// One address that two clusters ask for, by two processes at the same time, with caches that lag. The one that gets it goes first.
    VipOfTwo,
    /// It is deleted in the middle of its creation.
    DeletedEarly,
    /// It is paused in the middle, deleted, and goes on.
    Paused,
}

impl ClusterStory {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::Dns, Self::TwoLeaders, Self::Given, Self::Vip, Self::VipOfTwo, Self::DeletedEarly, Self::Paused];

    fn has_two_leaders(self) -> bool {
        matches!(self, Self::TwoLeaders | Self::VipOfTwo)
    }
}

/// One run to be made.
#[derive(Clone)]
pub struct ClusterScenario {
    /// The seed of everything.
    pub seed: u64,
    /// What happens.
    pub story: ClusterStory,
    /// What goes wrong.
    pub troubles: Troubles,
    /// The rules.
    pub rules: cluster::Rules,
}

impl ClusterScenario {
    /// A run with the rules as they are.
    pub fn new(seed: u64, story: ClusterStory, troubles: Troubles) -> Self {
        Self { seed, story, troubles, rules: cluster::Rules::default() }
    }
}

/// Makes a run, in a paused world of its own.
pub fn run_cluster(scenario: &ClusterScenario) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime can be made");
    runtime.block_on(play(scenario.clone()))
}

async fn play(scenario: ClusterScenario) -> Outcome {
    let ClusterScenario { seed, story, troubles, rules } = scenario;
    let lag = if story.has_two_leaders() { Duration::from_secs(8) } else { Duration::from_millis(200) };
    let faults = Faults { jitter: Jitter::seeded(seed), slowest: Duration::from_millis(50), watch_lag: lag, ..Faults::none() };
    let mut world = World::new(FLEET, seed, troubles, faults);
    world.cluster_rules = rules;
    let people = People { world: &world, client: world.people(), seed };
    people.prepare(story).await;
    let machine_rules = machine::Rules::default();
    let second = async {
        if story.has_two_leaders() {
            world.manage_for_ever(&machine_rules).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        () = people.live(story) => {}
        () = world.manage_for_ever(&machine_rules) => {}
        () = second => {}
    }
    world.outcome()
}

fn is_provisioned(object: &Value) -> bool {
    object["status"]["initialization"]["provisioned"] == Value::Bool(true)
}

struct People<'a> {
    world: &'a World,
    client: kube::Client,
    seed: u64,
}

impl People<'_> {
    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version) =
            if kind == "Cluster" { ("cluster.x-k8s.io", "v1beta2") } else { ("infrastructure.cluster.x-k8s.io", "v1beta1") };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
    }

    async fn create(&self, kind: &str, mut object: Value) {
        let api = self.api(kind);
        let group = if kind == "Cluster" { "cluster.x-k8s.io/v1beta2" } else { "infrastructure.cluster.x-k8s.io/v1beta1" };
        (object["apiVersion"], object["kind"]) = (json!(group), json!(kind));
        let object: DynamicObject = serde_json::from_value(object).expect("the explorer's objects are well-formed");
        api.create(&PostParams::default(), &object).await.expect("people can create objects");
    }

    async fn delete(&self, kind: &str, name: &str) {
        drop(self.api(kind).delete(name, &DeleteParams::default()).await);
    }

    async fn prepare(&self, story: ClusterStory) {
        self.world.emulator.world(|world| {
            let admin = world.user_named("admin").map(|user| user.id);
            let reserve = |world: &mut maas_emulator::world::World, ip: &str| {
                let kind = maas_emulator::world::network::AddressKind::UserReserved;
                let address =
                    maas_emulator::world::addressing::NewAddress { ip: ip.parse().ok(), kind, subnet: None, user: admin, interface: None };
                world.add_address(address)
            };
            let address = reserve(world, FOREIGN_ADDRESSES[0]);
            reserve(world, FOREIGN_ADDRESSES[1]);
            let domain =
                world.domains.values().find(|domain| domain.name == "maas").map(|domain| domain.id).expect("the domain is in the fleet");
            let name = FOREIGN_NAME.to_owned();
            world.names.add(None, |id| maas_emulator::world::dns::DnsResource {
                id,
                name,
                domain,
                address_ttl: None,
                addresses: vec![address],
                made_in: 0,
            });
        });
        let mut spec = json!({"dnsDomain": "maas"});
        if story == ClusterStory::Vip {
            spec["endpoint"] = json!({"mode": "VIP", "vip": {"subnet": "racks"}});
        }
        if story == ClusterStory::VipOfTwo {
            spec["endpoint"] = json!({"mode": "VIP", "vip": {"subnet": "racks"}});
            // Asked for by the Clusters, which neither sees of the other: both try.
            let asked = json!({"host": "10.30.0.77", "port": 6443});
            self.cluster("one", &asked, &spec).await;
            self.cluster("two", &asked, &spec).await;
            return;
        }
        if story == ClusterStory::Given {
            spec["controlPlaneEndpoint"] = json!({"host": format!("{FOREIGN_NAME}.maas"), "port": 6443});
        }
        self.cluster("one", &Value::Null, &spec).await;
    }

    async fn cluster(&self, name: &str, endpoint: &Value, spec: &Value) {
        let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasCluster", "name": name});
        self.create(
            "Cluster",
            json!({"metadata": {"name": name}, "spec": {"infrastructureRef": reference, "controlPlaneEndpoint": endpoint}}),
        )
        .await;
        let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": "u"}]);
        let labels = json!({"cluster.x-k8s.io/cluster-name": name});
        self.create("MaasCluster", json!({"metadata": {"name": name, "labels": labels, "ownerReferences": owner}, "spec": spec})).await;
    }

    /// A machine of the control plane; nobody owns it, so its own controller leaves it alone.
    async fn machine(&self, name: &str, address: &str) {
        let labels = json!({"cluster.x-k8s.io/cluster-name": "one", "cluster.x-k8s.io/control-plane": ""});
        let spec = json!({"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy", "systemID": name});
        self.create("MaasMachine", json!({"metadata": {"name": name, "labels": labels}, "spec": spec})).await;
        self.machine_is(name, address, "True", "MachineDeployed").await;
    }

    async fn machine_is(&self, name: &str, address: &str, status: &str, reason: &str) {
        let condition = json!({"type": "MachineDeployed", "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-11-16T00:00:00Z"});
        let status = json!({"phase": "Deployed", "machineState": "Deployed", "addresses": [{"type": "ExternalIP", "address": address}], "conditions": [condition]});
        let change = Patch::Merge(json!({"status": status}));
        self.api("MaasMachine").patch_status(name, &PatchParams::default(), &change).await.expect("a machine's status can be written");
    }

    async fn live(&self, story: ClusterStory) {
        match story {
            ClusterStory::Dns | ClusterStory::TwoLeaders | ClusterStory::Given => self.life_of_a_name().await,
            ClusterStory::Vip => {
                self.wait_until_provisioned().await;
                sleep(Duration::from_mins(6)).await;
                let reserved = self.world.witness.our_reservations();
                if reserved.len() != 1 {
                    self.world.witness.violated(format!("when all is quiet {reserved:?} are reserved instead of one"));
                }
            }
            ClusterStory::VipOfTwo => self.one_after_the_other().await,
            ClusterStory::DeletedEarly => sleep(Duration::from_millis(Jitter::seeded(self.seed).draw("deleted", 0) % 5_000)).await,
            ClusterStory::Paused => {
                self.machine("a", "10.30.0.1").await;
                sleep(Duration::from_millis(Jitter::seeded(self.seed).draw("paused", 0) % 10_000)).await;
                self.pause(true).await;
                sleep(Duration::from_mins(3)).await;
                self.delete("MaasMachine", "a").await;
                self.delete("MaasCluster", "one").await;
                sleep(Duration::from_mins(3)).await;
                self.pause(false).await;
            }
        }
        for name in ["a", "b", "c"] {
            self.delete("MaasMachine", name).await;
        }
        for name in ["one", "two"] {
            self.delete("MaasCluster", name).await;
        }
        self.wait("the cluster is gone", |world| world.server.objects("maasclusters").is_empty()).await;
        // What is late comes now.
        sleep(Duration::from_mins(3)).await;
        self.world.witness.nothing_is_left_in_dns();
    }

    /// Two want one address: when the one that got it goes, the other gets it.
    async fn one_after_the_other(&self) {
        self.wait_until_provisioned().await;
        sleep(Duration::from_mins(3)).await;
        let winner = self.world.server.objects("maasclusters").into_iter().find(is_provisioned).unwrap_or_default();
        self.delete("MaasCluster", winner["metadata"]["name"].as_str().unwrap_or_default()).await;
        self.wait("the other has it", |world| matches!(world.server.objects("maasclusters").as_slice(), [other] if is_provisioned(other)))
            .await;
        sleep(Duration::from_mins(3)).await;
        let reserved = self.world.witness.our_reservations();
        if reserved.len() != 1 {
            self.world.witness.violated(format!("when all is quiet {reserved:?} are reserved instead of one"));
        }
    }

    async fn life_of_a_name(&self) {
        self.wait_until_provisioned().await;
        self.machine("a", "10.30.0.1").await;
        self.machine("b", "10.30.0.2").await;
        self.wait_until_it_leads_to(&["10.30.0.1", "10.30.0.2"]).await;
        // A blip: for a while nobody has power.
        for (name, address) in [("a", "10.30.0.1"), ("b", "10.30.0.2")] {
            self.machine_is(name, address, "False", "MachinePoweredOff").await;
        }
        sleep(Duration::from_mins(2)).await;
        for (name, address) in [("a", "10.30.0.1"), ("b", "10.30.0.2")] {
            self.machine_is(name, address, "True", "MachineDeployed").await;
        }
        self.machine("c", "10.30.0.3").await;
        self.delete("MaasMachine", "a").await;
        self.wait_until_it_leads_to(&["10.30.0.2", "10.30.0.3"]).await;
        // Longer than anything can be late, and than it takes to see what was.
        sleep(Duration::from_mins(12)).await;
        self.world.witness.names_are_well(&["10.30.0.2", "10.30.0.3"]);
    }

    async fn pause(&self, paused: bool) {
        self.world.witness.paused(paused);
        let change = Patch::Merge(json!({"spec": {"paused": paused}}));
        self.api("Cluster").patch("one", &PatchParams::default(), &change).await.expect("people can pause a cluster");
    }

    async fn wait_until_provisioned(&self) {
        self.wait("it is provisioned", |world| world.server.objects("maasclusters").iter().any(is_provisioned)).await;
    }

    async fn wait_until_it_leads_to(&self, addresses: &[&str]) {
        self.wait(&format!("it leads to {addresses:?}"), |world| {
            let names = world.witness.our_names();
            names.len() == 1 && names[0].addresses.iter().map(String::as_str).eq(addresses.iter().copied())
        })
        .await;
    }

    async fn wait(&self, what: &str, is_true: impl Fn(&World) -> bool) {
        let began = Instant::now();
        while !is_true(self.world) {
            if began.elapsed() > Duration::from_mins(90) {
                let (objects, names) = (self.world.server.objects("maasclusters"), self.world.witness.names());
                self.world.witness.violated(format!("after 90 minutes it is not true that {what}: {objects:#?} {names:?}"));
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }
}
