//! Interfaces: what can be said of them is kept, and what makes no sense is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod maas;

use maas_emulator::{Emulator, Fleet};
use serde_json::{Value, json};

const FLEET: &str = "
fabrics: [{id: 0, vlans: [{id: 5001}, {id: 5002, vid: 10}, {id: 5003, vid: 20}]}]
subnets:
  - {id: 1, cidr: 10.20.0.0/24, gateway: 10.20.0.1, vlan: 5001}
  - {id: 2, cidr: 10.30.0.0/24, gateway: 10.30.0.1, vlan: 5001}
  - {id: 3, cidr: 10.40.0.0/24, vlan: 5001}
machines:
  - {hostname: ready, interfaces: [{id: 11, mac: '52:54:00:00:00:11'}, {id: 12, mac: '52:54:00:00:00:12', links: []}]}
  - {hostname: deployed, status: deployed, owner: admin, image: ubuntu/jammy, interfaces: [{id: 21, mac: '52:54:00:00:00:21'}]}
";

struct Caller {
    emulator: Emulator,
}

impl Caller {
    fn new() -> Self {
        Caller { emulator: maas::emulator(FLEET) }
    }

    fn system_id(&self, hostname: &str) -> String {
        self.emulator.world(|world| world.all_machines().find(|machine| machine.hostname == hostname).unwrap().system_id.clone())
    }

    async fn call(&self, method: &str, machine: &str, rest: &str, form: &str) -> (u16, Value) {
        let path = format!("nodes/{}/interfaces/{rest}", self.system_id(machine));
        maas::answer(&self.emulator, Some(Fleet::DEFAULT_KEY), method, &path, form).await
    }

    async fn done(&self, method: &str, machine: &str, rest: &str, form: &str) -> Value {
        let (status, body) = self.call(method, machine, rest, form).await;
        assert_eq!(status, 200, "{rest} {form}: {body}");
        body
    }

    /// The call is refused because of this field, and nothing has changed.
    async fn refused(&self, method: &str, machine: &str, rest: &str, form: &str, field: &str, words: &str) {
        let before = self.call("GET", machine, "", "").await;
        let (status, body) = self.call(method, machine, rest, form).await;
        let told = body[field][0].as_str().unwrap_or_default().to_owned();
        assert!(status == 400 && told.contains(words), "{rest} {form}: {status} {body}");
        assert_eq!(self.call("GET", machine, "", "").await, before, "{rest} {form}");
    }

    async fn gateways(&self, machine: &str) -> Value {
        let path = format!("machines/{}/", self.system_id(machine));
        let (_, body) = maas::call(&self.emulator, Some(Fleet::DEFAULT_KEY), "GET", &path, "").await;
        serde_json::from_str::<Value>(&body).unwrap()["default_gateways"]["ipv4"].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_card_of_a_deployed_machine_is_replaced_and_nothing_else_of_it_changes() {
    let caller = Caller::new();
    let form = "mac_address=52-54-0-AA-BB-1&name=new0&tags=a&vlan=5002&mtu=9000";
    let card = caller.done("PUT", "deployed", "21/", form).await;
    assert_eq!((&card["mac_address"], &card["name"]), (&json!("52:54:00:aa:bb:01"), &json!("new0")));
    assert_eq!((&card["tags"], &card["vlan"]["id"], &card["effective_mtu"]), (&json!([]), &json!(5001), &json!(1500)));
    for (method, rest, words) in [
        ("POST", "?op=create_physical", "create"),
        ("POST", "?op=create_bridge", "create bridge"),
        ("POST", "?op=create_bond", "create bond"),
        ("POST", "?op=create_vlan", "create VLAN"),
        ("POST", "21/?op=link_subnet", "link subnet"),
        ("POST", "21/?op=unlink_subnet", "unlink subnet"),
        ("POST", "21/?op=disconnect", "disconnect"),
        ("POST", "21/?op=set_default_gateway", "set default gateway"),
        ("DELETE", "21/", "delete interface"),
    ] {
        let words = format!("Cannot {words} interface because the machine is not New, Ready, Allocated, or Broken.");
        assert_eq!(caller.call(method, "deployed", rest, "").await, (409, json!(words)), "{rest}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_interface_is_missed_before_anybody_asks_for_rights_or_for_its_machine() {
    let caller = Caller::new();
    for (method, rest) in [("GET", "99/"), ("PUT", "99/"), ("DELETE", "99/"), ("POST", "99/?op=link_subnet")] {
        let missing = (404, json!("No Interface matches the given query."));
        assert_eq!(caller.call(method, "deployed", rest, "").await, missing, "{method} {rest}");
        let path = format!("nodes/nosuch/interfaces/{rest}");
        let (status, words) = maas::call(&caller.emulator, Some(Fleet::DEFAULT_KEY), method, &path, "").await;
        assert_eq!((status, json!(words)), missing, "{method} {path}");
    }
    let (_, words) = maas::call(&caller.emulator, Some(Fleet::DEFAULT_KEY), "GET", "nodes/nosuch/interfaces/", "").await;
    assert_eq!(words, "No Node matches the given query.");
}

#[tokio::test(start_paused = true)]
async fn hardware_addresses_are_changed_and_checked() {
    let caller = Caller::new();
    caller.refused("PUT", "ready", "11/", "mac_address=nonsense", "mac_address", "'nonsense' is not a valid MAC address.").await;
    caller.refused("PUT", "ready", "11/", "mac_address=52:54:00:00:00:21", "mac_address", "already in use").await;
    caller.refused("POST", "ready", "?op=create_bond", "name=b&parents=11&mac_address=zzz", "mac_address", "not a valid MAC").await;
    caller.refused("POST", "ready", "?op=create_bridge", "name=b&parent=11&mac_address=zzz", "mac_address", "not a valid MAC").await;
    let same = caller.done("PUT", "ready", "11/", "mac_address=52:54:00:00:00:11").await;
    assert_eq!(same["mac_address"], "52:54:00:00:00:11", "its own address is not another's");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_interfaces_is_kept() {
    let caller = Caller::new();
    let card = "mac_address=52:54:00:00:00:13&name=eth2&mtu=9000&accept_ra=true&enabled=false&link_speed=1000&interface_speed=2500\
                &link_connected=true&tags=a,b&vlan=5001";
    let card = caller.done("POST", "ready", "?op=create_physical", card).await;
    assert_eq!(card["params"], json!({"mtu": 9000, "accept_ra": true}));
    assert_eq!((&card["enabled"], &card["link_speed"], &card["interface_speed"]), (&json!(false), &json!(1000), &json!(2500)));
    let form = "name=br0&parent=11&mac_address=52:54:00:00:00:b0&mtu=1400&tags=x&vlan=5002&bridge_type=ovs&bridge_stp=true&bridge_fd=7";
    let bridge = caller.done("POST", "ready", "?op=create_bridge", form).await;
    assert_eq!(bridge["params"], json!({"bridge_fd": 7, "bridge_stp": true, "bridge_type": "ovs", "mtu": 1400}));
    let told = (&bridge["mac_address"], &bridge["tags"], &bridge["vlan"]["id"]);
    assert_eq!(told, (&json!("52:54:00:00:00:b0"), &json!(["x"]), &json!(5002)));
    let changed = caller.done("PUT", "ready", "br0/", "bridge_fd=9&mtu=").await;
    assert_eq!(changed["params"], json!({"bridge_fd": 9, "bridge_stp": true, "bridge_type": "ovs"}), "an empty MTU is none");
    let form = "name=bond0&parents=12&parents=eth2&bond_mode=802.3ad&bond_lacp_rate=slow&bond_xmit_hash_policy=layer3%2B4&mtu=9000";
    let bond = caller.done("POST", "ready", "?op=create_bond", form).await;
    assert_eq!(
        (&bond["params"]["bond_mode"], &bond["params"]["bond_miimon"], &bond["effective_mtu"]),
        (&json!("802.3ad"), &json!(100), &json!(9000))
    );
    let bond = caller.done("PUT", "ready", "bond0/", "bond_miimon=50").await;
    assert_eq!((&bond["params"]["bond_mode"], &bond["params"]["bond_miimon"]), (&json!("802.3ad"), &json!(50)));
    let vlan = caller.done("POST", "ready", "?op=create_vlan", "parent=bond0&vlan=5002&mtu=1300").await;
    assert_eq!((&vlan["name"], &vlan["effective_mtu"]), (&json!("bond0.10"), &json!(1300)));
    let vlan = caller.done("PUT", "ready", "bond0.10/", "vlan=5003&name=ignored").await;
    assert_eq!((&vlan["name"], &vlan["vlan"]["id"]), (&json!("bond0.20"), &json!(5003)), "its name tells its tag");
    assert_eq!(caller.done("PUT", "ready", "br0/", "vlan=").await["vlan"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_of_interfaces_is_refused() {
    let caller = Caller::new();
    for (form, field, words) in [
        ("name=b&parents=11&bond_mode=no-such", "bond_mode", "'no-such' is not a valid bond_mode.  It should be one of: 'balance-rr',"),
        ("name=b&parents=11&bond_lacp_rate=no-such", "bond_lacp_rate", "It should be one of: 'fast', 'slow'."),
        ("name=b&parents=11&bond_miimon=-1", "bond_miimon", "greater than or equal to 0"),
        ("name=b&parents=11&bond_num_grat_arp=256", "bond_num_grat_arp", "less than or equal to 255"),
        ("name=b&parents=11&parents=99", "parents", "Select a valid choice. 99 is not one of the available choices."),
        ("name=b&parents=11&mtu=551", "mtu", "greater than or equal to 552"),
    ] {
        caller.refused("POST", "ready", "?op=create_bond", form, field, words).await;
    }
    for (form, field, words) in [
        ("name=b&parent=11&bridge_fd=xyz", "bridge_fd", "Enter a whole number."),
        ("name=b&parent=11&bridge_type=nonsense", "bridge_type", "'nonsense' is not a valid bridge_type."),
        ("name=b&parent=11&mtu=large", "mtu", "Enter a whole number."),
        ("name=b&parent=11&vlan=99", "vlan", "Select a valid choice."),
    ] {
        caller.refused("POST", "ready", "?op=create_bridge", form, field, words).await;
    }
    caller.refused("PUT", "ready", "11/", "link_connected=false&link_speed=1000", "__all__", "link_speed cannot be set").await;
    caller.done("POST", "ready", "?op=create_bond", "name=bond0&parents=12").await;
    caller.refused("POST", "ready", "12/?op=link_subnet", "mode=AUTO&subnet=1", "bond", "when interface is in a bond(bond0)").await;
}

#[tokio::test(start_paused = true)]
async fn the_gateway_that_was_chosen_leads_out() {
    let caller = Caller::new();
    assert_eq!(caller.gateways("ready").await, json!({"gateway_ip": "10.20.0.1", "link_id": null}));
    let link = |interface: &Value| interface["links"].as_array().unwrap().last().unwrap()["id"].clone();
    caller.refused("POST", "ready", "12/?op=set_default_gateway", "", "__all__", "This interface has no usable gateways.").await;
    let none = "doesn't provide a gateway IP address.";
    caller.refused("POST", "ready", "12/?op=link_subnet", "mode=AUTO&subnet=3&default_gateway=true", "default_gateway", none).await;
    let mode = "Cannot use in mode 'dhcp'.";
    caller.refused("POST", "ready", "12/?op=link_subnet", "mode=DHCP&subnet=2&default_gateway=true", "default_gateway", mode).await;
    let second = link(&caller.done("POST", "ready", "12/?op=link_subnet", "mode=AUTO&subnet=2&default_gateway=true").await);
    assert_eq!(caller.gateways("ready").await, json!({"gateway_ip": "10.30.0.1", "link_id": second}));
    let first = link(&caller.done("POST", "ready", "11/?op=set_default_gateway", "").await);
    assert_eq!(caller.gateways("ready").await, json!({"gateway_ip": "10.20.0.1", "link_id": first}));
    caller.refused("POST", "ready", "12/?op=set_default_gateway", "link_id=77777", "link_id", "'77777' is not a valid link_id.").await;
    let third = link(&caller.done("POST", "ready", "12/?op=link_subnet", "mode=STATIC&subnet=1").await);
    let several = "Interface has more than one usable IPv4 gateway.";
    caller.refused("POST", "ready", "12/?op=set_default_gateway", "", "link_id", several).await;
    caller.done("POST", "ready", "12/?op=set_default_gateway", &format!("link_id={third}")).await;
    assert_eq!(caller.gateways("ready").await, json!({"gateway_ip": "10.20.0.1", "link_id": third}));
    caller.done("POST", "ready", "12/?op=unlink_subnet", &format!("id={third}")).await;
    assert_eq!(caller.gateways("ready").await["link_id"], Value::Null, "a link that is gone leads nowhere");
}

#[tokio::test(start_paused = true)]
async fn an_interface_on_no_vlan_gets_that_of_the_subnet_it_is_linked_to() {
    let caller = Caller::new();
    caller.done("POST", "ready", "11/?op=disconnect", "").await;
    let linked = caller.done("POST", "ready", "11/?op=link_subnet", "mode=AUTO&subnet=2").await;
    assert_eq!(linked["vlan"]["id"], 5001);
    caller.done("PUT", "ready", "12/", "vlan=5002").await;
    caller.refused("POST", "ready", "12/?op=link_subnet", "mode=AUTO&subnet=1", "subnet", "None found with id=1.").await;
    assert_eq!(caller.done("POST", "ready", "12/?op=link_subnet", "mode=AUTO&subnet=1&force=true").await["vlan"]["id"], 5001);
}
