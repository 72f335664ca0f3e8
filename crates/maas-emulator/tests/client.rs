//! The client against the emulator: each was written from the recordings alone, so that what they agree on is MAAS.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use std::collections::BTreeMap;

use maas::{administrator, client, emulator, settled};
use maas_client::{
    Allocate, Deploy, Error, EventFilter, EventLevel, EventPlace, MachineFilter, MachineStatus, Release, Reserve, SubnetSettings, UserData,
    VlanSettings,
};
use maas_emulator::Fault;
use maas_emulator::faults::{CallFault, CallHarm, CallPattern};

const FLEET: &str = "
zones: [{name: az1}, {name: az2}]
machines:
  - {hostname: small-, count: 3, zone: az1, cpus: 2, memory: 4096}
  - {hostname: large-, count: 2, zone: az2, cpus: 16, memory: 65536, tags: [big]}
";

#[tokio::test(start_paused = true)]
async fn a_machine_is_allocated_marked_deployed_and_released() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    let machine = client.machines().allocate(&Allocate::new().zone("az1").agent_name("claim-1").comment("for c1")).await.unwrap();
    assert_eq!(machine.status, MachineStatus::Allocated);
    assert_eq!(machine.owner.as_deref(), Some("admin"));
    let one = client.machine(&machine.system_id);
    let marks = BTreeMap::from([("claim".to_owned(), "claim-1".to_owned())]);
    assert_eq!(one.set_workload_annotations(&marks).await.unwrap().workload_annotations, marks);
    let found = client.machines().list(&MachineFilter::new().agent_name("claim-1")).await.unwrap();
    assert_eq!(found.len(), 1, "an unanswered allocation is found by its agent name");

    let deploy = Deploy { user_data: Some(UserData::new("#cloud-config\n")), ..Deploy::default() };
    assert_eq!(one.deploy(&deploy).await.unwrap().status, MachineStatus::Deploying, "deploying is seen for a while");
    let deployed = settled(&client, &machine.system_id, MachineStatus::Deployed).await.unwrap();
    assert!(!deployed.ip_addresses.is_empty());
    assert_eq!(
        emulator
            .world(|world| world.machines.get(world.machine_id(&machine.system_id.to_string()).unwrap()).unwrap().user_data.clone())
            .unwrap(),
        b"#cloud-config\n"
    );

    assert_eq!(one.release(&Release::default()).await.unwrap().status, MachineStatus::Releasing);
    let released = settled(&client, &machine.system_id, MachineStatus::Ready).await.unwrap();
    assert_eq!(released.owner, None);
    assert!(released.workload_annotations.is_empty());
    let page = client
        .events()
        .query(&EventFilter::new().machine(&machine.system_id).level(EventLevel::Info), EventPlace::Newest, None)
        .await
        .unwrap();
    let kinds: Vec<&str> = page.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["Released", "Releasing", "Deployed", "Image Deployed", "Deploying"]);
}

#[tokio::test(start_paused = true)]
async fn six_clients_that_allocate_at_once_get_six_machines_or_are_told_there_is_none() {
    let emulator = emulator(FLEET);
    let clients: Vec<_> = (0..6).map(|_| administrator(&emulator)).collect();
    let any = Allocate::new();
    let answers = futures::future::join_all(clients.iter().map(|client| client.machines().allocate(&any))).await;
    let mut taken: Vec<String> = answers.iter().flatten().map(|machine| machine.system_id.to_string()).collect();
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), 5, "five machines, each given once");
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Err(Error::Conflict { retry_after: None, .. }))).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_of_six_clients_gets_the_machine_all_of_them_name() {
    let emulator = emulator(FLEET);
    let clients: Vec<_> = (0..6).map(|_| administrator(&emulator)).collect();
    let target = clients[0].machines().list(&MachineFilter::new()).await.unwrap().remove(0).system_id;
    let named = Allocate::new().system_id(&target);
    let answers = futures::future::join_all(clients.iter().map(|client| client.machines().allocate(&named))).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);

    let deploy = Deploy::default();
    let answers = futures::future::join_all(clients[..4].iter().map(|client| client.machine(&target).deploy(&deploy))).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "one deployment of four begins");
    settled(&clients[0], &target, MachineStatus::Deployed).await.unwrap();

    let release = Release::default();
    let answers = futures::future::join_all(clients[..4].iter().map(|client| client.machine(&target).release(&release))).await;
    assert!(answers.iter().all(Result::is_ok), "releasing again is no error");
}

#[tokio::test(start_paused = true)]
async fn names_created_at_once_are_all_created_and_later_ones_are_refused() {
    let emulator = emulator(FLEET);
    let clients: Vec<_> = (0..4).map(|_| administrator(&emulator)).collect();
    let addresses: Vec<Vec<std::net::IpAddr>> = (210..214).map(|last| vec![[10, 20, 0, last].into()]).collect();
    let creations = clients
        .iter()
        .zip(&addresses)
        .map(|(client, addresses)| async move { client.dns_resources().create("api.maas", None, addresses).await });
    let answers = futures::future::join_all(creations).await;
    assert!(answers.iter().all(Result::is_ok), "MAAS does not stop concurrent creations: {answers:?}");
    assert_eq!(emulator.world(|world| world.names.len()), 4);
    let late = clients[0].dns_resources().create("api.maas", None, &[]).await;
    assert!(matches!(late, Err(Error::Refused { .. })), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn one_of_four_clients_makes_the_zone_all_of_them_name_and_the_others_are_told_it_exists() {
    let emulator = emulator(FLEET);
    let clients: Vec<_> = (0..4).map(|_| administrator(&emulator)).collect();
    // First as chance has it, then with none of them seeing what the others do.
    for name in ["race-zone", "unseen-zone"] {
        let answers = futures::future::join_all(clients.iter().map(|client| client.zones().create(name, ""))).await;
        let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!((made.len(), refused.len()), (1, 3), "{name}: {made:?} {refused:?}");
        for refusal in refused.into_iter().map(Result::unwrap_err) {
            assert!(matches!(refusal, Error::Refused { .. }), "{refusal:?}");
            assert!(refusal.to_string().contains("Physical zone with this Name already exists."), "{refusal}");
        }
        let named = clients[0].zones().list().await.unwrap().into_iter().filter(|zone| zone.name == name).count();
        assert_eq!(named, 1, "{name}");
        let matching = CallPattern { path: Some("zones/".to_owned()), ..CallPattern::default() };
        let together = CallFault { matching, skip: 0, times: Some(4), harm: CallHarm::Together { calls: 4 } };
        emulator.inject(Fault::Call(together)).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn addresses_reserved_at_once_differ_and_outlive_the_names_that_point_to_them() {
    let emulator = emulator(FLEET);
    let clients: Vec<_> = (0..6).map(|_| administrator(&emulator)).collect();
    let wish = Reserve { subnet: Some("10.20.0.0/24".into()), ..Reserve::default() };
    let answers = futures::future::join_all(clients.iter().map(|client| client.ip_addresses().reserve(&wish))).await;
    let mut addresses: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().ip).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 6);
    let name = clients[0].dns_resources().create("vip.maas", None, &[[10, 20, 0, 240].into()]).await.unwrap();
    clients[0].dns_resources().delete(name.id).await.unwrap();
    let kept = clients[0].ip_addresses().list(Some([10, 20, 0, 240].into())).await.unwrap();
    assert_eq!(kept.len(), 1, "deleting a name does not free its address");
}

#[tokio::test(start_paused = true)]
async fn a_plain_user_sees_and_does_less_than_an_administrator() {
    let emulator = emulator(
        "
users:
  - {name: admin, superuser: true, keys: [{key: 'ac:at:as'}]}
  - {name: alice, keys: [{key: 'lc:lt:ls'}]}
machines: [{hostname: m, count: 2}]
",
    );
    let (admin, alice) = (client(&emulator, "ac:at:as"), client(&emulator, "lc:lt:ls"));
    let taken = admin.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    assert_eq!(alice.machines().list(&MachineFilter::new()).await.unwrap().len(), 1, "machines of others are not listed");
    assert!(matches!(alice.machine(&taken).read().await, Err(Error::NotPermitted { .. })));
    assert!(matches!(alice.zones().create("az9", "").await, Err(Error::NotPermitted { .. })));
    let own = alice.machines().allocate(&Allocate::new()).await.unwrap().system_id;
    assert!(matches!(alice.machine(&own).commission(&maas_client::Commission::default()).await, Err(Error::NotPermitted { .. })));
    let stranger = client(&emulator, "lc:lt:wrong");
    assert!(matches!(stranger.machines().list(&MachineFilter::new()).await, Err(Error::Unauthenticated { .. })));
}

#[tokio::test(start_paused = true)]
async fn spaces_are_renamed_and_what_was_on_a_vlan_that_is_removed_is_not_lost() {
    let emulator = emulator(FLEET);
    let client = administrator(&emulator);
    let space = client.spaces().create("storage").await.unwrap();
    client.spaces().create("other").await.unwrap();
    assert_eq!(client.spaces().rename(space.id, "fast-storage").await.unwrap().name, "fast-storage");
    assert!(matches!(client.spaces().rename(space.id, "other").await, Err(Error::Refused { .. })));

    let fabric = client.vlans().list_fabrics().await.unwrap().remove(0);
    let default = client.vlans().list(fabric.id).await.unwrap().remove(0).id;
    let vlan = client.vlans().create(fabric.id, 30, &VlanSettings::default()).await.unwrap().id;
    let subnet = client.subnets().create("10.30.0.0/24", &SubnetSettings { vlan: Some(vlan), ..SubnetSettings::default() }).await.unwrap();
    client.vlans().delete(vlan).await.unwrap();
    assert!(client.vlans().list(fabric.id).await.unwrap().iter().all(|left| left.id != vlan));
    assert_eq!(client.subnets().read(&subnet.id.into()).await.unwrap().vlan.id, default);
    assert!(matches!(client.vlans().delete(default).await, Err(Error::Refused { .. })), "the first VLAN of a fabric stays");
}
