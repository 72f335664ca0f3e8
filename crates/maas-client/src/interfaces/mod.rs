//! A machine's network interfaces. Changing them needs an administrator even on a machine of one's own.

mod create;
mod object;

use std::net::IpAddr;

pub use create::{CreateBond, CreateBridge, CreatePhysical, CreateVlan};
pub use object::{Discovered, Interface, InterfaceType, Link, LinkMode};

use crate::{
    Client, Error, Id, Subnet, SystemId, Vlan,
    call::{Call, Form, Path},
};

/// How to link an interface with a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSubnet {
    /// Where the address comes from.
    pub mode: LinkMode,
    /// The subnet, which must be on the interface's VLAN.
    pub subnet: Option<Id<Subnet>>,
    /// The address of a static link; without it the first free one.
    pub ip_address: Option<IpAddr>,
    /// Whether its gateway becomes the machine's.
    pub default_gateway: Option<bool>,
    /// Puts the interface on the subnet's VLAN and removes its other links.
    pub force: Option<bool>,
}

/// What an interface shall be; what is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceSettings {
    /// Its name.
    pub name: Option<String>,
    /// Its MAC address.
    pub mac_address: Option<String>,
    /// The VLAN it is connected to.
    pub vlan: Option<Id<Vlan>>,
    /// The longest packet.
    pub mtu: Option<u32>,
    /// All of its tags.
    pub tags: Option<Vec<String>>,
}

/// Calls on the interfaces of one machine; see [`Client::interfaces`].
///
/// Changes are for administrators, even on a machine of one's own, and are sent once. MAAS takes them while the machine is New, Ready,
/// Allocated or Broken or failed its tests; in other states they are a final conflict.
#[derive(Clone, Copy, Debug)]
pub struct Interfaces<'a> {
    client: &'a Client,
    machine: &'a SystemId,
}

impl Client {
    /// The network interfaces of a machine. Changing them needs an administrator.
    pub fn interfaces<'a>(&'a self, machine: &'a SystemId) -> Interfaces<'a> {
        Interfaces { client: self, machine }
    }
}

impl InterfaceSettings {
    fn form(&self) -> Form {
        Form::new()
            .maybe("name", self.name.as_ref())
            .maybe("mac_address", self.mac_address.as_ref())
            .maybe("vlan", self.vlan)
            .maybe("mtu", self.mtu)
            .maybe("tags", self.tags.as_ref().map(|tags| tags.join(",")))
    }
}

impl Interfaces<'_> {
    fn all(self) -> Path {
        Path::new("nodes").item(self.machine).item("interfaces")
    }

    fn one(self, id: Id<Interface>) -> Path {
        self.all().item(id)
    }

    async fn change(self, call: Call) -> Result<Interface, Error> {
        self.client.object(call.about("machine", self.machine)).await
    }

    async fn create(self, operation: &'static str, form: Form) -> Result<Interface, Error> {
        self.change(Call::post(self.all()).operation(operation).form(form)).await
    }

    /// All of them.
    pub async fn list(self) -> Result<Vec<Interface>, Error> {
        self.client.json(Call::get(self.all()).about("machine", self.machine)).await
    }

    /// One of them.
    pub async fn read(self, id: Id<Interface>) -> Result<Interface, Error> {
        self.change(Call::get(self.one(id))).await
    }

    /// One of them, by its name, such as `eth0`.
    pub async fn read_by_name(self, name: &str) -> Result<Interface, Error> {
        self.change(Call::get(self.all().item(name))).await
    }

    /// A physical interface that MAAS did not find by itself.
    pub async fn create_physical(self, interface: &CreatePhysical) -> Result<Interface, Error> {
        self.create("create_physical", interface.form()).await
    }

    /// A bridge over an interface. The parent's links go away and the bridge has none: link it afterwards.
    pub async fn create_bridge(self, bridge: &CreateBridge) -> Result<Interface, Error> {
        self.create("create_bridge", bridge.form()).await
    }

    /// A bond of interfaces. Rests on reading MAAS's source, not on recordings, but for refusals.
    pub async fn create_bond(self, bond: &CreateBond) -> Result<Interface, Error> {
        self.create("create_bond", bond.form()).await
    }

    /// A VLAN interface over an interface. Rests on reading MAAS's source, not on recordings, but for refusals.
    pub async fn create_vlan(self, vlan: &CreateVlan) -> Result<Interface, Error> {
        self.create("create_vlan", vlan.form()).await
    }

    /// Changes an interface.
    pub async fn update(self, id: Id<Interface>, settings: &InterfaceSettings) -> Result<Interface, Error> {
        self.change(Call::put(self.one(id)).form(settings.form()).once()).await
    }

    /// Removes an interface.
    pub async fn delete(self, id: Id<Interface>) -> Result<(), Error> {
        self.client.done(Call::delete(self.one(id)).once().about("machine", self.machine)).await
    }

    /// Links an interface with a subnet. An address that is taken is a conflict.
    pub async fn link_subnet(self, id: Id<Interface>, link: &LinkSubnet) -> Result<Interface, Error> {
        let form = Form::new()
            .with("mode", String::from(link.mode.clone()).to_uppercase())
            .maybe("subnet", link.subnet)
            .maybe("ip_address", link.ip_address)
            .maybe("default_gateway", link.default_gateway)
            .maybe("force", link.force);
        self.change(Call::post(self.one(id)).operation("link_subnet").form(form).taken_is_not_found()).await
    }

    /// Removes a link. The last one is replaced by a link without an address, which has a number of its own.
    pub async fn unlink_subnet(self, id: Id<Interface>, link: Id<Link>) -> Result<Interface, Error> {
        self.change(Call::post(self.one(id)).operation("unlink_subnet").form(Form::new().with("id", link))).await
    }

    /// Removes all links and the VLAN.
    pub async fn disconnect(self, id: Id<Interface>) -> Result<Interface, Error> {
        self.change(Call::post(self.one(id)).operation("disconnect")).await
    }
}
