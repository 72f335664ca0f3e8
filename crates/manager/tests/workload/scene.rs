//! A real manager whose objects want to hear of workload clusters. The objects are config maps: one with a host name is a machine, which
//! names its node; one without wants to hear of its whole cluster.

use crate::world::{World, key};
use decisions::machine::NodeFacts;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt, api::PostParams};
use manager::{
    Action, Controller, Controllers, Jitter, Listeners, ObjectKey, Pokes, Settings,
    workload::{Host, Workload},
};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

type Reconciles = Arc<Mutex<Vec<(Instant, String)>>>;

/// A manager that runs.
pub struct Scene {
    pub world: World,
    pub pokes: Pokes,
    reconciles: Reconciles,
}

impl Scene {
    pub async fn object(&self, name: &str, cluster: &str, host: Option<(&str, &str)>) {
        self.object_at(name, cluster, host, &[]).await;
    }

    /// The same with the addresses of its host.
    pub async fn object_at(&self, name: &str, cluster: &str, host: Option<(&str, &str)>, addresses: &[&str]) {
        let mut data = BTreeMap::from([("cluster".to_owned(), cluster.to_owned())]);
        if let Some((hostname, fqdn)) = host {
            data.extend([("hostname".to_owned(), hostname.to_owned()), ("fqdn".to_owned(), fqdn.to_owned())]);
            data.insert("addresses".to_owned(), addresses.join(" "));
        }
        let mut object = ConfigMap { data: Some(data), ..ConfigMap::default() };
        object.metadata.name = Some(name.to_owned());
        let objects: Api<ConfigMap> = Api::namespaced(self.world.server.client("people"), "team");
        objects.create(&PostParams::default(), &object).await.unwrap();
    }

    /// What was reconciled since this moment, in order.
    pub fn since(&self, moment: Instant) -> Vec<String> {
        self.reconciles.lock().unwrap().iter().filter(|(at, _)| *at >= moment).map(|(_, name)| name.clone()).collect()
    }
}

/// Long enough for everything to have happened, short enough for no watch to end.
pub async fn quiet() {
    sleep(Duration::from_secs(20)).await;
}

/// Runs `script` in a world with these clusters, all of which answer.
pub async fn play(clusters: &[&str], script: impl for<'a> FnOnce(&'a Scene) -> BoxFuture<'a, ()>) {
    let world = World::new(clusters).await;
    for cluster in clusters {
        world.kubeconfig(cluster, "t").await;
    }
    let (reconciles, stop) = (Reconciles::default(), CancellationToken::new());
    let settings = Settings { sync_period: Duration::ZERO, ..Settings::new(world.clock, Jitter::seeded(1)) };
    let mut controllers = Controllers::new(world.server.client("controllers"), settings);
    let objects = controllers.watch_primary::<ConfigMap>();
    let pokes: Arc<OnceLock<Pokes>> = Arc::default();
    let (workload, made, noted) = (world.workload.clone(), Arc::clone(&pokes), Arc::clone(&reconciles));
    let controller = Controller::new("config-map", &objects, move |object: Arc<ConfigMap>, _| {
        let (workload, pokes, reconciles) = (workload.clone(), Arc::clone(&made), Arc::clone(&noted));
        async move {
            reconciles.lock().unwrap().push((Instant::now(), object.name_any()));
            reconcile(&object, &workload, pokes.get().unwrap()).await;
            Ok::<_, Infallible>(Action::AwaitChange)
        }
    });
    pokes.set(controller.pokes()).unwrap();
    controllers.add(controller);
    let workload = world.workload.clone();
    controllers.add_task("the workload clusters", |stop| workload.follow(stop));
    let running = controllers.run(Listeners::default(), stop.clone().cancelled_owned());
    let acting = async {
        for cluster in clusters {
            world.until_it_answers(cluster).await;
        }
        let scene = Scene { world: world.clone(), pokes: pokes.get().unwrap().clone(), reconciles };
        script(&scene).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(running, acting);
    ended.unwrap();
}

/// What the real ones do.
async fn reconcile(object: &ConfigMap, workload: &Workload, pokes: &Pokes) {
    let data = object.data.clone().unwrap_or_default();
    let cluster = key(&data["cluster"]);
    let Some(hostname) = data.get("hostname") else { return workload.watch(&cluster, ObjectKey::of(object), pokes) };
    let addresses: Vec<IpAddr> = data["addresses"].split_whitespace().map(|address| address.parse().unwrap()).collect();
    let host = Host { hostname, fqdn: &data["fqdn"], addresses: &addresses };
    let facts = workload.watch_node(&cluster, ObjectKey::of(object), &host, pokes);
    if let NodeFacts::Present { name, provider_id: None, .. } = facts {
        drop(workload.name_node(&cluster, &name, &format!("maas:///az1/{}", object.name_any())).await);
    }
}
