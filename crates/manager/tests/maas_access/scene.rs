//! A real manager that reconciles one object for each machine and follows MAAS in a task of its own. The objects are config maps.

use crate::world::{ADMIN, ALICE, ENDPOINT, World};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt, api::PostParams};
use maas_client::{Client, MachineFilter, SystemId};
use manager::{
    Action, Controller, Controllers, Jitter, Listeners, ObjectKey, Pokes, Settings,
    maas::{Account, AccountError, MaasAccounts},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// When each object was reconciled.
type Reconciles = Arc<Mutex<Vec<(Instant, String)>>>;

/// A manager that runs, with one object for each machine.
pub struct Scene {
    pub world: World,
    pub account: Account,
    /// Object to machine.
    pub machines: BTreeMap<String, SystemId>,
    pub pokes: Pokes,
    reconciles: Reconciles,
}

impl Scene {
    /// What was reconciled since this moment, in order.
    pub fn since(&self, moment: Instant) -> Vec<(Duration, String)> {
        let reconciles = self.reconciles.lock().unwrap();
        reconciles.iter().filter(|(at, _)| *at >= moment).map(|(at, name)| (*at - moment, name.clone())).collect()
    }

    pub fn names_since(&self, moment: Instant) -> Vec<String> {
        self.since(moment).into_iter().map(|(_, name)| name).collect()
    }

    pub fn busy(&self, object: &str, busy: bool) {
        self.account.busy(&ObjectKey::namespaced("team", object), busy);
    }

    /// A colleague of ours: MAAS tells us nothing of machines of others.
    pub fn person(&self) -> Client {
        self.world.person(ALICE)
    }

    pub fn polls(&self) -> usize {
        self.world.maas.calls("level=DEBUG")
    }
}

/// Long enough for everything to have happened.
pub async fn quiet() {
    sleep(Duration::from_mins(2)).await;
}

/// Runs `script` in a world whose objects have settled.
pub async fn play(script: impl for<'a> FnOnce(&'a Scene) -> BoxFuture<'a, ()>) -> World {
    let world = World::new();
    world.default_secret("team", ENDPOINT, ALICE).await;
    let ids: Vec<SystemId> =
        world.person(ADMIN).machines().list(&MachineFilter::new()).await.unwrap().into_iter().map(|machine| machine.system_id).collect();
    let machines: BTreeMap<String, SystemId> = ["a", "b", "c", "d"].map(str::to_owned).into_iter().zip(ids).collect();
    let objects: Api<ConfigMap> = Api::namespaced(world.server.client("people"), "team");
    for name in machines.keys() {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.clone());
        objects.create(&PostParams::default(), &object).await.unwrap();
    }
    let reconciles = Reconciles::default();
    let stop = CancellationToken::new();
    let (pokes, running) = manage(&world, machines.clone(), Arc::clone(&reconciles), stop.clone());
    let accounts = world.accounts.clone();
    let acting = async {
        quiet().await;
        // Away from the moments of polls, where counts would depend on who comes first.
        sleep(Duration::from_secs(5)).await;
        let account = accounts.of("team", None).await.unwrap();
        let scene = Scene { world, account, machines, pokes, reconciles };
        script(&scene).await;
        stop.cancel();
        scene.world
    };
    let ((), world) = tokio::join!(running, acting);
    world
}

/// The manager under test. Reconciles do what the real ones will: ask for the account, and say which machine they want to hear of.
fn manage(
    world: &World,
    machines: BTreeMap<String, SystemId>,
    reconciles: Reconciles,
    stop: CancellationToken,
) -> (Pokes, impl Future<Output = ()> + use<>) {
    let settings = Settings { sync_period: Duration::ZERO, ..Settings::new(world.clock, Jitter::seeded(1)) };
    let mut controllers = Controllers::new(world.server.client("controllers"), settings);
    let objects = controllers.watch_primary::<ConfigMap>();
    let pokes: Arc<OnceLock<Pokes>> = Arc::default();
    let (accounts, known) = (world.accounts.clone(), Arc::clone(&pokes));
    let controller = Controller::new("config-map", &objects, move |object: Arc<ConfigMap>, _| {
        let (accounts, machines, reconciles, known) = (accounts.clone(), machines.clone(), Arc::clone(&reconciles), Arc::clone(&known));
        async move { reconcile(&object, &accounts, &machines, &reconciles, known.get().unwrap()).await }
    });
    let made = controller.pokes();
    pokes.set(made.clone()).unwrap();
    controllers.add(controller);
    let accounts = world.accounts.clone();
    controllers.add_task("the feed of MAAS", |stop| accounts.follow(stop));
    (made, async move { controllers.run(Listeners::default(), stop.cancelled_owned()).await.unwrap() })
}

async fn reconcile(
    object: &ConfigMap,
    accounts: &MaasAccounts,
    machines: &BTreeMap<String, SystemId>,
    reconciles: &Reconciles,
    pokes: &Pokes,
) -> Result<Action, AccountError> {
    let key = ObjectKey::of(object);
    reconciles.lock().unwrap().push((Instant::now(), object.name_any()));
    let account = accounts.of("team", None).await?;
    account.watch(&machines[&key.name], key, pokes);
    Ok(Action::AwaitChange)
}
