//! Exchanges about DNS, addresses, subnets and interfaces.

use maas_client::{
    CreateBond, CreateBridge, CreatePhysical, CreateVlan, DnsFilter, DomainSettings, Error, Id, InterfaceSettings, IpRangeType, LinkMode,
    LinkSubnet, NewDnsRecord, NewIpRange, Reserve, SubnetName, SubnetSettings, SystemId,
};
use serde_json::Value;

use super::{Request, encoded, fields::Fields};

type Outcome = Option<Result<Value, Error>>;

pub async fn again(request: &Request<'_>, query: &mut Fields, form: &mut Fields) -> Outcome {
    let client = request.client;
    let number = request.segments.last().and_then(|segment| segment.parse::<i64>().ok());
    Some(match (request.method, request.segments, request.operation) {
        ("GET", ["domains"], "") => encoded(client.domains().list().await),
        ("POST", ["domains"], "") => {
            let name = form.text("name").unwrap_or_default();
            encoded(client.domains().create(&name, &domain(form)).await)
        }
        ("GET", ["domains", _], "") => encoded(client.domains().read(Id::new(number?)).await),
        ("PUT", ["domains", _], "") => encoded(client.domains().update(Id::new(number?), &domain(form)).await),
        ("DELETE", ["domains", _], "") => encoded(client.domains().delete(Id::new(number?)).await),

        ("GET", ["dnsresources"], "") => {
            let filter = DnsFilter {
                fqdn: query.text("fqdn"),
                domain: query.text("domain"),
                name: query.text("name"),
                rrtype: query.text("rrtype"),
                all: query.yes("all"),
            };
            encoded(client.dns_resources().list(&filter).await)
        }
        ("POST", ["dnsresources"], "") => {
            let (ttl, addresses) = (form.ttl("address_ttl"), form.addresses("ip_addresses"));
            match (form.text("fqdn"), form.text("name"), form.text("domain")) {
                (Some(fqdn), None, None) => encoded(client.dns_resources().create(&fqdn, ttl, &addresses).await),
                (None, Some(name), Some(domain)) => encoded(client.dns_resources().create_in(&domain, &name, ttl, &addresses).await),
                _ => return None,
            }
        }
        ("GET", ["dnsresources", _], "") => encoded(client.dns_resources().read(Id::new(number?)).await),
        ("PUT", ["dnsresources", _], "") => {
            let (ttl, addresses) = (form.ttl("address_ttl"), form.addresses("ip_addresses"));
            encoded(client.dns_resources().update(Id::new(number?), ttl, &addresses).await)
        }
        ("DELETE", ["dnsresources", _], "") => encoded(client.dns_resources().delete(Id::new(number?)).await),

        ("GET", ["dnsresourcerecords"], "") => encoded(client.dns_records().list(query.text("domain").as_deref()).await),
        ("POST", ["dnsresourcerecords"], "") => {
            let record = NewDnsRecord {
                fqdn: form.text("fqdn").unwrap_or_default(),
                rrtype: form.text("rrtype").unwrap_or_default(),
                rrdata: form.text("rrdata").unwrap_or_default(),
                ttl: form.ttl("ttl"),
            };
            encoded(client.dns_records().create(&record).await)
        }

        ("GET", ["ipaddresses"], "") if query.yes("all") => encoded(client.ip_addresses().list_all().await),
        ("GET", ["ipaddresses"], "") => encoded(client.ip_addresses().list(query.parsed("ip")).await),
        ("POST", ["ipaddresses"], "reserve") => {
            let reserve =
                Reserve { subnet: form.text("subnet"), ip: form.parsed("ip"), hostname: form.text("hostname"), mac: form.text("mac") };
            encoded(client.ip_addresses().reserve(&reserve).await)
        }
        ("POST", ["ipaddresses"], "release") => {
            let (ip, force) = (form.parsed("ip")?, form.yes("force"));
            encoded(client.ip_addresses().release(ip, force).await)
        }

        ("GET", ["subnets"], "") => encoded(client.subnets().list().await),
        ("POST", ["subnets"], "") => {
            let cidr = form.text("cidr").unwrap_or_default();
            let settings = SubnetSettings {
                name: form.text("name"),
                vlan: form.id("vlan"),
                gateway_ip: form.parsed("gateway_ip"),
                ..SubnetSettings::default()
            };
            encoded(client.subnets().create(&cidr, &settings).await)
        }
        ("GET", ["subnets", rest @ ..], operation) => {
            let name = match rest.join("/") {
                cidr if cidr.starts_with("cidr:") => SubnetName::Cidr(cidr["cidr:".len()..].to_owned()),
                name if name.starts_with("name:") => SubnetName::Name(name["name:".len()..].to_owned()),
                number => SubnetName::Id(Id::new(number.parse().ok()?)),
            };
            match operation {
                "" => encoded(client.subnets().read(&name).await),
                "ip_addresses" => encoded(client.subnets().ip_addresses(&name).await),
                "reserved_ip_ranges" => encoded(client.subnets().reserved_ip_ranges(&name).await),
                "unreserved_ip_ranges" => encoded(client.subnets().unreserved_ip_ranges(&name).await),
                "statistics" => encoded(client.subnets().statistics(&name).await),
                _ => return None,
            }
        }
        ("GET", ["fabrics"], "") => encoded(client.vlans().list_fabrics().await),
        ("GET", ["fabrics", fabric, "vlans"], "") => encoded(client.vlans().list(Id::new(fabric.parse().ok()?)).await),
        ("GET", ["ipranges"], "") => encoded(client.ip_ranges().list().await),
        ("POST", ["ipranges"], "") => {
            let range = NewIpRange {
                kind: IpRangeType::from(form.text("type")?),
                start: form.parsed("start_ip")?,
                end: form.parsed("end_ip")?,
                subnet: form.id("subnet"),
                comment: form.text("comment"),
            };
            encoded(client.ip_ranges().create(&range).await)
        }
        (_, ["nodes", machine, "interfaces", rest @ ..], _) => return interfaces(request, &SystemId::from(*machine), rest, form).await,
        _ => return None,
    })
}

fn domain(form: &mut Fields) -> DomainSettings {
    DomainSettings { name: form.text("name"), authoritative: form.parsed("authoritative"), ttl: form.ttl("ttl") }
}

async fn interfaces(request: &Request<'_>, machine: &SystemId, rest: &[&str], form: &mut Fields) -> Outcome {
    let interfaces = request.client.interfaces(machine);
    let number = rest.first().and_then(|segment| segment.parse().ok()).map(Id::new);
    Some(match (request.method, number, request.operation) {
        ("GET", Some(id), "") => encoded(interfaces.read(id).await),
        ("GET", None, "") if rest.is_empty() => encoded(interfaces.list().await),
        ("GET", None, "") => encoded(interfaces.read_by_name(rest[0]).await),
        ("PUT", Some(id), "") => {
            let settings = InterfaceSettings { vlan: form.id("vlan"), mtu: form.parsed("mtu"), ..InterfaceSettings::default() };
            encoded(interfaces.update(id, &settings).await)
        }
        ("DELETE", Some(id), "") => encoded(interfaces.delete(id).await),
        ("POST", Some(id), "link_subnet") => {
            let link = LinkSubnet {
                mode: form.text("mode").map(|mode| LinkMode::from(mode.to_lowercase())).unwrap_or_default(),
                subnet: form.id("subnet"),
                ip_address: form.parsed("ip_address"),
                default_gateway: form.parsed("default_gateway"),
                force: form.parsed("force"),
            };
            encoded(interfaces.link_subnet(id, &link).await)
        }
        ("POST", Some(id), "unlink_subnet") => encoded(interfaces.unlink_subnet(id, form.id("id")?).await),
        ("POST", Some(id), "disconnect") => encoded(interfaces.disconnect(id).await),
        ("POST", None, "create_bridge") => {
            let bridge = CreateBridge {
                name: form.text("name")?,
                parent: form.id("parent")?,
                bridge_stp: form.parsed("bridge_stp"),
                bridge_fd: form.parsed("bridge_fd"),
                ..CreateBridge::default()
            };
            encoded(interfaces.create_bridge(&bridge).await)
        }
        ("POST", None, "create_bond") => {
            let bond = CreateBond {
                name: form.text("name")?,
                parents: form.list("parents").iter().map(|id| Id::new(id.parse().unwrap())).collect(),
                bond_mode: form.text("bond_mode"),
                ..CreateBond::default()
            };
            encoded(interfaces.create_bond(&bond).await)
        }
        ("POST", None, "create_vlan") => {
            let vlan = CreateVlan { parent: form.id("parent")?, vlan: form.id("vlan")?, ..CreateVlan::default() };
            encoded(interfaces.create_vlan(&vlan).await)
        }
        ("POST", None, "create_physical") => {
            let physical = CreatePhysical {
                name: form.text("name")?,
                mac_address: form.text("mac_address")?,
                vlan: form.id("vlan"),
                ..CreatePhysical::default()
            };
            encoded(interfaces.create_physical(&physical).await)
        }
        _ => return None,
    })
}
