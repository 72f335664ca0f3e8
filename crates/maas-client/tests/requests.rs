//! What calls send that no recording holds: the rest of the parameters, and the endpoints that rest on MAAS's source.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod support;

use std::collections::BTreeMap;

use maas_client::{
    Allocate, BridgeType, Client, Commission, CreateBond, CreateBridge, CreatePhysical, CreateVlan, Deploy, Error, Id, InterfaceSettings,
    MachineFilter, MachineSettings, MachineStatus, MebiBytes, NewDnsRecord, PowerOff, PowerState, Release, SubnetName, SubnetSettings,
    SystemId, TimeToLive, UserData, VlanSettings, VmClusterSettings, VmHostSettings,
};

/// A client, and what it sent since the last look: method, path, query and body.
struct Looked {
    client: Client,
    sent: support::Sent,
    seen: usize,
}

impl Looked {
    fn new() -> Self {
        let (transport, sent) = support::always(support::json("null"));
        Self { client: support::builder().build_on(transport), sent, seen: 0 }
    }

    fn expect<T>(&mut self, result: Result<T, Error>, expected: &str) {
        // Null is no answer to most calls. That a call was not sent is the only error that counts here.
        assert!(!matches!(result, Err(Error::Invalid { .. })), "{expected}: {:?}", result.err());
        let requests = self.sent.all();
        assert_eq!(requests.len(), self.seen + 1, "{expected}");
        self.seen += 1;
        let request = requests.last().unwrap();
        let target = request.uri().path_and_query().unwrap().as_str().strip_prefix("/MAAS/api/2.0/").unwrap();
        let body = String::from_utf8(request.body().to_vec()).unwrap();
        let shown =
            if body.is_empty() { format!("{} {target}", request.method()) } else { format!("{} {target} {body}", request.method()) };
        assert_eq!(shown, expected);
    }
}

#[tokio::test]
async fn every_filter_of_machines_has_the_name_maas_gives_it() {
    let mut looked = Looked::new();
    let client = looked.client.clone();
    let filter = MachineFilter::new()
        .not_in_zone("a")
        .not_in_pool("b")
        .architecture("amd64")
        .cpu_count(4)
        .cpu_speed(2000)
        .memory(MebiBytes(1024))
        .power_state(PowerState::On)
        .owner("me")
        .pod("h")
        .not_pod("i")
        .pod_type("lxd")
        .not_pod_type("virsh")
        .subnet("cidr:10.0.0.0/8")
        .not_subnet("7")
        .vlan("v")
        .fabric("f")
        .link_speed(1000)
        .storage("root:8")
        .interfaces("x:name=eth0")
        .devices("vendor_id=1")
        .deployment_target("memory")
        .not_deployment_target("disk")
        .not_owner("you")
        .not_power_state(PowerState::Error)
        .not_status(MachineStatus::Ready)
        .status(MachineStatus::FailedDeployment);
    looked.expect(
        client.machines().list(&filter).await,
        "GET machines/?not_in_zone=a&not_in_pool=b&arch=amd64&cpu_count=4&cpu_speed=2000&mem=1024&power_state=on&owner=me&pod=h&not_pod=i\
         &pod_type=lxd&not_pod_type=virsh&subnets=cidr%3A10.0.0.0%2F8&not_subnets=7&vlans=v&fabrics=f&link_speed=1000&storage=root%3A8\
         &interfaces=x%3Aname%3Deth0&devices=vendor_id%3D1&deployment_target=memory&not_deployment_target=disk&not_owner=you&not_power_state=error&not_status=ready\
         &status=failed_deployment",
    );
    looked.expect(client.machines().list(&MachineFilter::new().status(MachineStatus::Other(77))).await, "GET machines/?status=77");
}

#[tokio::test]
async fn every_constraint_and_parameter_has_the_name_maas_gives_it() {
    let mut looked = Looked::new();
    let client = looked.client.clone();
    let id = SystemId::from("abc123");
    let allocate = Allocate::new()
        .not_pod("h")
        .pod_type("lxd")
        .not_pod_type("lxd")
        .not_subnet("7")
        .fabric("f")
        .not_fabric("g")
        .fabric_class("c")
        .not_fabric_class("d")
        .owner("me")
        .not_owner("you")
        .power_state(PowerState::Off)
        .not_power_state(PowerState::Error)
        .deployment_target("disk")
        .not_deployment_target("memory")
        .bridge_type(BridgeType::Standard);
    looked.expect(
        client.machines().allocate(&allocate).await,
        "POST machines/?op=allocate not_pod=h&pod_type=lxd&not_pod_type=lxd&not_subnets=7&fabrics=f&not_fabrics=g&fabric_classes=c\
         &not_fabric_classes=d&owner=me&not_owner=you&power_state=off&not_power_state=error&deployment_target=disk\
         &not_deployment_target=memory&bridge_type=standard",
    );
    let deploy = Deploy {
        user_data: Some(UserData::new("#cloud-config\n")),
        bridge_type: Some(BridgeType::Ovs),
        bridge_stp: Some(true),
        bridge_fd: Some(15),
        install_rackd: Some(true),
        enable_kernel_crash_dump: Some(true),
        license_key: Some("k".into()),
        vcenter_registration: Some(false),
        ..Deploy::default()
    };
    looked.expect(
        client.machine(&id).deploy(&deploy).await,
        "POST machines/abc123/?op=deploy user_data=I2Nsb3VkLWNvbmZpZwo%3D&bridge_type=ovs&bridge_stp=true&bridge_fd=15&install_rackd=true\
         &enable_kernel_crash_dump=true&license_key=k&vcenter_registration=false",
    );
    let release = Release { force: true, scripts: vec!["a".to_owned(), "b".to_owned()], ..Release::default() };
    looked.expect(client.machine(&id).release(&release).await, "POST machines/abc123/?op=release force=true&scripts=a%2Cb");
    let commission = Commission { skip_bmc_config: true, commissioning_scripts: vec!["x".to_owned()], ..Commission::default() };
    looked.expect(
        client.machine(&id).commission(&commission).await,
        "POST machines/abc123/?op=commission skip_bmc_config=1&commissioning_scripts=x",
    );
    looked.expect(client.machine(&id).power_off(PowerOff::Soft, None).await, "POST machines/abc123/?op=power_off stop_mode=soft");
    looked.expect(client.machine(&id).delete(true).await, "DELETE machines/abc123/?force=true");
    let settings = MachineSettings {
        domain: Some("d".to_owned()),
        min_hwe_kernel: Some("ga-24.04".to_owned()),
        swap_size: Some(0),
        cpu_count: Some(2),
        memory: Some(MebiBytes(2048)),
        power_parameters: BTreeMap::from([("power_address".to_owned(), "10.0.0.1".into())]),
        ..MachineSettings::default()
    };
    looked.expect(
        client.machine(&id).update(&settings).await,
        "PUT machines/abc123/ domain=d&min_hwe_kernel=ga-24.04&swap_size=0&cpu_count=2&memory=2048&power_parameters_power_address=10.0.0.1",
    );
}

#[tokio::test]
async fn interfaces_are_made_with_everything_maas_takes() {
    let mut looked = Looked::new();
    let client = looked.client.clone();
    let id = SystemId::from("abc123");
    let interfaces = client.interfaces(&id);
    let tags = vec!["a".to_owned(), "b".to_owned()];
    let bond = CreateBond {
        name: "bond0".to_owned(),
        parents: vec![Id::new(3), Id::new(4)],
        mac_address: Some("52:54:00:00:00:01".to_owned()),
        vlan: Some(Id::new(5001)),
        bond_mode: Some("802.3ad".to_owned()),
        bond_miimon: Some(100),
        bond_downdelay: Some(1),
        bond_updelay: Some(2),
        bond_lacp_rate: Some("fast".to_owned()),
        bond_xmit_hash_policy: Some("layer3+4".to_owned()),
        bond_num_grat_arp: Some(3),
        mtu: Some(9000),
        accept_ra: Some(false),
        tags: tags.clone(),
    };
    looked.expect(
        interfaces.create_bond(&bond).await,
        "POST nodes/abc123/interfaces/?op=create_bond name=bond0&parents=3&parents=4&mac_address=52%3A54%3A00%3A00%3A00%3A01&vlan=5001\
         &bond_mode=802.3ad&bond_miimon=100&bond_downdelay=1&bond_updelay=2&bond_lacp_rate=fast&bond_xmit_hash_policy=layer3%2B4\
         &bond_num_grat_arp=3&mtu=9000&accept_ra=false&tags=a%2Cb",
    );
    let vlan = CreateVlan { parent: Id::new(3), vlan: Id::new(5002), mtu: Some(1400), accept_ra: None, tags: tags.clone() };
    looked
        .expect(interfaces.create_vlan(&vlan).await, "POST nodes/abc123/interfaces/?op=create_vlan vlan=5002&parent=3&mtu=1400&tags=a%2Cb");
    let bridge = CreateBridge {
        name: "br0".to_owned(),
        parent: Id::new(3),
        mac_address: Some("m".to_owned()),
        vlan: Some(Id::new(1)),
        bridge_type: Some("ovs".to_owned()),
        mtu: Some(9000),
        accept_ra: Some(true),
        tags,
        ..CreateBridge::default()
    };
    looked.expect(
        interfaces.create_bridge(&bridge).await,
        "POST nodes/abc123/interfaces/?op=create_bridge name=br0&parent=3&mac_address=m&vlan=1&bridge_type=ovs&mtu=9000&accept_ra=true\
         &tags=a%2Cb",
    );
    let physical = CreatePhysical { name: "eth9".to_owned(), mac_address: "m".to_owned(), mtu: Some(1500), ..CreatePhysical::default() };
    looked.expect(
        interfaces.create_physical(&physical).await,
        "POST nodes/abc123/interfaces/?op=create_physical name=eth9&mac_address=m&mtu=1500",
    );
    let settings = InterfaceSettings { name: Some("lan".to_owned()), tags: Some(Vec::new()), ..InterfaceSettings::default() };
    looked.expect(interfaces.update(Id::new(3), &settings).await, "PUT nodes/abc123/interfaces/3/ name=lan&tags=");
}

#[tokio::test]
async fn endpoints_without_recordings_have_the_paths_of_the_source() {
    let mut looked = Looked::new();
    let client = looked.client.clone();
    looked.expect(client.spaces().list().await, "GET spaces/");
    looked.expect(client.spaces().read(Id::new(2)).await, "GET spaces/2/");
    looked.expect(client.spaces().create("s").await, "POST spaces/ name=s");
    looked.expect(client.spaces().rename(Id::new(2), "t").await, "PUT spaces/2/ name=t");
    looked.expect(client.spaces().delete(Id::new(2)).await, "DELETE spaces/2/");
    looked.expect(client.vlans().read(Id::new(5001)).await, "GET vlans/5001/");
    let vlan = VlanSettings { name: Some("n".to_owned()), mtu: Some(9000), dhcp_on: Some(true), ..VlanSettings::default() };
    looked.expect(client.vlans().create(Id::new(1), 30, &vlan).await, "POST fabrics/1/vlans/ name=n&mtu=9000&dhcp_on=true&vid=30");
    looked.expect(client.vlans().update(Id::new(5001), &vlan).await, "PUT vlans/5001/ name=n&mtu=9000&dhcp_on=true");
    looked.expect(client.vlans().delete(Id::new(5001)).await, "DELETE vlans/5001/");
    let cluster = VmClusterSettings { zone: Some("az1".to_owned()), ..VmClusterSettings::default() };
    looked.expect(client.vm_clusters().read(Id::new(1)).await, "GET vm-clusters/1/");
    looked.expect(client.vm_clusters().update(Id::new(1), &cluster).await, "PUT vm-clusters/1/ zone=az1");
    looked.expect(client.vm_clusters().delete(Id::new(1), true).await, "DELETE vm-clusters/1/?decompose=true");
    let host = VmHostSettings {
        certificate: Some("c".to_owned()),
        key: Some("k".into()),
        cpu_over_commit_ratio: Some(2.0),
        default_macvlan_mode: Some("bridge".to_owned()),
        ..VmHostSettings::default()
    };
    looked.expect(
        client.vm_hosts().create("lxd", &host).await,
        "POST vm-hosts/ certificate=c&key=k&cpu_over_commit_ratio=2.0&default_macvlan_mode=bridge&type=lxd",
    );
    looked.expect(client.ssh_keys().list().await, "GET account/prefs/sshkeys/");
    looked.expect(client.ssh_keys().import("lp:me").await, "POST account/prefs/sshkeys/?op=import keysource=lp%3Ame");
    looked.expect(client.ssh_keys().delete(Id::new(1)).await, "DELETE account/prefs/sshkeys/1/");
    looked.expect(client.boot_resources().delete(Id::new(4)).await, "DELETE boot-resources/4/");
    looked.expect(client.subnets().read(&SubnetName::Name("a b".to_owned())).await, "GET subnets/name:a%20b/");
    let subnet =
        SubnetSettings { dns_servers: Some(vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()]), ..SubnetSettings::default() };
    looked.expect(client.subnets().update(Id::new(1), &subnet).await, "PUT subnets/1/ dns_servers=10.0.0.1+10.0.0.2");
    looked.expect(client.subnets().delete(Id::new(1)).await, "DELETE subnets/1/");
    looked.expect(client.ip_ranges().read(Id::new(1)).await, "GET ipranges/1/");
    looked.expect(client.ip_ranges().update(Id::new(1), None, None, Some("c")).await, "PUT ipranges/1/ comment=c");
    looked.expect(client.ip_ranges().delete(Id::new(1)).await, "DELETE ipranges/1/");
    let record = NewDnsRecord { fqdn: "a.b".to_owned(), rrtype: "TXT".to_owned(), rrdata: "x".to_owned(), ttl: Some(TimeToLive(30)) };
    looked.expect(client.dns_records().create(&record).await, "POST dnsresourcerecords/ fqdn=a.b&rrtype=TXT&rrdata=x&ttl=30");
    looked.expect(client.dns_records().read(Id::new(1)).await, "GET dnsresourcerecords/1/");
    looked.expect(client.dns_records().update(Id::new(1), Some("y"), None).await, "PUT dnsresourcerecords/1/ rrdata=y");
    looked.expect(client.dns_records().delete(Id::new(1)).await, "DELETE dnsresourcerecords/1/");
    looked.expect(client.zones().update("old", Some("new"), None).await, "PUT zones/old/ name=new");
    looked.expect(client.resource_pools().read(Id::new(0)).await, "GET resourcepool/0/");
}
