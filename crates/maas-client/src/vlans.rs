//! VLANs and the fabrics they are on. A VLAN's number is not its tag.

use serde::{Deserialize, Serialize};

use crate::{
    Client, Error, Id, SystemId,
    call::{Call, Form, Path},
};

/// A VLAN of a fabric. Its number is not its tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Vlan {
    /// Its number in MAAS, such as 5001.
    pub id: Id<Vlan>,
    /// Its tag on the wire; 0 for untagged.
    pub vid: u16,
    /// Its name.
    pub name: String,
    /// The longest packet.
    pub mtu: u32,
    /// Whether MAAS serves DHCP on it.
    pub dhcp_on: bool,
    /// Another DHCP server MAAS has seen on it.
    pub external_dhcp: Option<String>,
    /// The VLAN whose DHCP it is relayed to.
    pub relay_vlan: Option<Box<Vlan>>,
    /// The space it belongs to, by name; `undefined` for none.
    pub space: String,
    /// The fabric it is on, by name.
    pub fabric: String,
    /// The fabric it is on, by number.
    pub fabric_id: Id<Fabric>,
    /// The rack controller that serves it.
    pub primary_rack: Option<SystemId>,
    /// The one that stands by.
    pub secondary_rack: Option<SystemId>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// A fabric: VLANs that belong to the same switches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Fabric {
    /// Its number.
    pub id: Id<Fabric>,
    /// Its name.
    pub name: String,
    /// Its class, for constraints.
    pub class_type: Option<String>,
    /// Its VLANs.
    pub vlans: Vec<Vlan>,
    /// Its address in the API.
    pub resource_uri: String,
}

/// What a VLAN shall be; what is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VlanSettings {
    /// Its name.
    pub name: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// The longest packet.
    pub mtu: Option<u32>,
    /// Whether MAAS serves DHCP on it.
    pub dhcp_on: Option<bool>,
    /// The rack controller that serves it.
    pub primary_rack: Option<SystemId>,
    /// The space it belongs to, by name or number.
    pub space: Option<String>,
}

/// Calls on VLANs and fabrics; see [`Client::vlans`]. Those on single VLANs rest on reading MAAS's source, not on recordings.
#[derive(Clone, Copy, Debug)]
pub struct Vlans<'a>(&'a Client);

impl Client {
    /// The VLANs and fabrics.
    pub fn vlans(&self) -> Vlans<'_> {
        Vlans(self)
    }
}

impl VlanSettings {
    fn form(&self) -> Form {
        Form::new()
            .maybe("name", self.name.as_ref())
            .maybe("description", self.description.as_ref())
            .maybe("mtu", self.mtu)
            .maybe("dhcp_on", self.dhcp_on)
            .maybe("primary_rack", self.primary_rack.as_ref())
            .maybe("space", self.space.as_ref())
    }
}

fn all(fabric: Id<Fabric>) -> Path {
    Path::new("fabrics").item(fabric).item("vlans")
}

impl Vlans<'_> {
    /// All fabrics with their VLANs.
    pub async fn list_fabrics(self) -> Result<Vec<Fabric>, Error> {
        self.0.json(Call::get(Path::new("fabrics"))).await
    }

    /// The VLANs of a fabric.
    pub async fn list(self, fabric: Id<Fabric>) -> Result<Vec<Vlan>, Error> {
        self.0.json(Call::get(all(fabric)).about("fabric", fabric)).await
    }

    /// One VLAN, by its number. Rests on reading MAAS's source, not on recordings.
    pub async fn read(self, id: Id<Vlan>) -> Result<Vlan, Error> {
        self.0.object(Call::get(Path::new("vlans").item(id)).about("VLAN", id)).await
    }

    /// A new VLAN with this tag. For administrators. Rests on reading MAAS's source, not on recordings.
    pub async fn create(self, fabric: Id<Fabric>, vid: u16, settings: &VlanSettings) -> Result<Vlan, Error> {
        self.0.object(Call::post(all(fabric)).form(settings.form().with("vid", vid)).about("fabric", fabric)).await
    }

    /// Changes a VLAN. For administrators. Rests on reading MAAS's source, not on recordings.
    pub async fn update(self, id: Id<Vlan>, settings: &VlanSettings) -> Result<Vlan, Error> {
        self.0.object(Call::put(Path::new("vlans").item(id)).form(settings.form()).about("VLAN", id)).await
    }

    /// Removes a VLAN. For administrators. Rests on reading MAAS's source, not on recordings.
    pub async fn delete(self, id: Id<Vlan>) -> Result<(), Error> {
        self.0.done(Call::delete(Path::new("vlans").item(id)).about("VLAN", id)).await
    }
}
