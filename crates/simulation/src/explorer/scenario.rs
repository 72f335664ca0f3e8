//! One run: people want machines, keep them, pause, and give them back, while things go wrong.

use std::{collections::BTreeMap, time::Duration};

use manager::{Jitter, machine::Rules};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};

use super::{
    trouble::{CallKind, Matrix, Troubles},
    witness::Violation,
    world::World,
};
use crate::Faults;

const NAMESPACE: &str = "rack";

/// Four servers for two objects; one that somebody of the same user holds, and one of another user.
const FLEET: &str = "
machines:
  - {hostname: free-, count: 4, cpus: 4, memory: 8192}
  - {hostname: same-user, cpus: 4, memory: 8192, status: allocated, owner: admin}
  - {hostname: other-user, cpus: 4, memory: 8192, status: deployed, owner: somebody}
users:
  - {name: admin, superuser: true, keys: [{key: \"emulatorconsumer00:emulatortokenkey00:emulatortokensecret0000000000000\"}]}
  - {name: somebody}
timings: {deploy: [8, 20], power_off: [0.5, 1.5]}
";

/// What happens beside the troubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// Create, keep, delete.
    Plain,
    /// Two processes act at the same time, with caches that lag.
    TwoLeaders,
    /// One server cannot be deployed.
    BadServer,
    /// Everything is deleted in the middle of its creation.
    DeletedEarly,
    /// The cluster is paused, then everything is deleted, then it goes on.
    Paused,
    /// Somebody gives another object's server our claim as its agent name.
    Namesake,
    /// A server is released by hand and taken by somebody else of the same user.
    TakenAway,
}

impl Story {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Plain, Self::TwoLeaders, Self::BadServer, Self::DeletedEarly, Self::Paused, Self::Namesake, Self::TakenAway];
}

/// One run to be made.
#[derive(Clone)]
pub struct Scenario {
    /// The seed of everything.
    pub seed: u64,
    /// What happens.
    pub story: Story,
    /// What goes wrong.
    pub troubles: Troubles,
    /// The rules.
    pub rules: Rules,
}

impl Scenario {
    /// A run with the rules as they are.
    pub fn new(seed: u64, story: Story, troubles: Troubles) -> Self {
        Self { seed, story, troubles, rules: Rules::default() }
    }
}

/// What a run showed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What must not have happened.
    pub violations: Vec<Violation>,
    /// What went wrong on the way.
    pub matrix: Matrix,
    /// How many calls the controllers made.
    pub calls: u64,
    /// The same by kind.
    pub calls_by_kind: BTreeMap<CallKind, u64>,
    /// The digest of all calls to Kubernetes.
    pub digest: String,
}

/// Makes a run, in a paused world of its own.
pub fn run(scenario: &Scenario) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime can be made");
    runtime.block_on(play(scenario.clone()))
}

async fn play(scenario: Scenario) -> Outcome {
    let Scenario { seed, story, troubles, rules } = scenario;
    let lag = if story == Story::TwoLeaders { Duration::from_secs(8) } else { Duration::from_millis(200) };
    let faults = Faults { jitter: Jitter::seeded(seed), slowest: Duration::from_millis(50), watch_lag: lag, ..Faults::none() };
    let world = World::new(FLEET, seed, troubles, faults);
    let people = People { world: &world, client: world.people(), seed };
    people.prepare(story).await;
    let second = async {
        if story == Story::TwoLeaders {
            world.manage_for_ever(&rules).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    let first = world.manage_for_ever(&rules);
    tokio::select! {
        biased;
        () = people.live(story) => {}
        () = first => {}
        () = second => {}
    }
    Outcome {
        violations: world.witness.violations(),
        matrix: world.wire.matrix(),
        calls: world.wire.calls(),
        calls_by_kind: world.wire.calls_by_kind(),
        digest: world.finish(),
    }
}

struct People<'a> {
    world: &'a World,
    client: kube::Client,
    seed: u64,
}

impl People<'_> {
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

    async fn prepare(&self, story: Story) {
        for (name, whose) in [("same-user", "held by somebody of our user"), ("other-user", "another user's")] {
            let id = self.world.emulator.world(|world| {
                world.all_machines().find(|machine| machine.hostname == name).map(|machine| machine.system_id.clone()).unwrap_or_default()
            });
            self.world.witness.is_foreign(&id, whose);
        }
        if story == Story::BadServer {
            let harm = maas_emulator::faults::MachineHarm::FailDeploy("no disk".to_owned());
            let fault = maas_emulator::faults::MachineFault { machine: Some("free-01".to_owned()), times: None, harm };
            self.world.emulator.inject(maas_emulator::Fault::Machine(fault)).expect("the bad server exists");
        }
        let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}});
        let system: k8s_openapi::api::core::v1::Namespace = serde_json::from_value(system).expect("a namespace is well-formed");
        Api::all(self.client.clone()).create(&PostParams::default(), &system).await.expect("people can create namespaces");
        let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "one"},
            "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasCluster", "name": "one"}}});
        self.create(&self.clusters(), cluster, Some(json!({"initialization": {"infrastructureProvisioned": true}}))).await;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "boot"}, "data": {"value": "I2Nsb3VkLWNvbmZpZwo="}});
        self.create(&self.api("", "v1", "Secret"), secret, None).await;
        for name in ["a", "b"] {
            let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": name},
                "spec": {"clusterName": "one", "bootstrap": {"dataSecretName": "boot"},
                    "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "MaasMachine", "name": name}}});
            self.create(&self.api("cluster.x-k8s.io", "v1beta2", "Machine"), machine, None).await;
            let owner = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": "u"}]);
            let ours = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "MaasMachine",
                "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "one"}, "ownerReferences": owner},
                "spec": {"minCPU": 2, "minMemory": 4096, "image": "ubuntu/jammy", "provisioning": {"attempts": 20}}});
            self.create(&self.maas_machines(), ours, None).await;
        }
    }

    async fn live(&self, story: Story) {
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
                self.delete_all().await;
                sleep(Duration::from_mins(3)).await;
                self.pause(false).await;
            }
            Story::Plain | Story::TwoLeaders | Story::BadServer => {
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
    }

    async fn wait_until_provisioned(&self, wanted: usize) {
        let provisioned = |object: &Value| object["status"]["initialization"]["provisioned"] == Value::Bool(true);
        self.wait("its machines are provisioned", |objects| objects.iter().filter(|object| provisioned(object)).count() >= wanted).await;
    }

    async fn wait_until_gone(&self) {
        self.wait("everything is gone", <[Value]>::is_empty).await;
    }

    async fn wait(&self, what: &str, is_true: impl Fn(&[Value]) -> bool) {
        let began = Instant::now();
        loop {
            let objects = self.world.server.objects("maasmachines");
            if is_true(&objects) {
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

    async fn delete_all(&self) {
        for name in ["a", "b"] {
            drop(self.maas_machines().delete(name, &DeleteParams::default()).await);
        }
    }

    async fn pause(&self, paused: bool) {
        self.world.witness.paused(paused);
        let change = Patch::Merge(json!({"spec": {"paused": paused}}));
        self.clusters().patch("one", &PatchParams::default(), &change).await.expect("people can pause a cluster");
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
