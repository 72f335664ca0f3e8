//! What an answer must say so that it is taken for the object asked for. Missing keys are harmless except this one: any program may answer
//! `{}` with 200, and an object made of defaults would be a machine without an owner. Asked by the client of every single object.

use crate::{
    BootResource, Composed, DnsRecord, DnsResource, Domain, Id, Interface, IpAddress, IpRange, Machine, ResourcePool, Space, SshKey,
    Subnet, SubnetStatistics, SystemId, Tag, User, Vlan, VmCluster, VmHost, Zone,
};

/// An object that says which it is.
pub(crate) trait Named {
    /// What it is called in errors.
    const KIND: &'static str;

    /// Whether it says so.
    fn is_named(&self) -> bool;
}

fn is_number<K>(id: Id<K>) -> bool {
    id.number() >= 0
}

fn is_id(id: &SystemId) -> bool {
    !id.as_str().is_empty()
}

impl Named for Machine {
    const KIND: &'static str = "machine";

    fn is_named(&self) -> bool {
        is_id(&self.system_id)
    }
}

impl Named for Vec<Machine> {
    const KIND: &'static str = "machine";

    fn is_named(&self) -> bool {
        self.iter().all(Named::is_named)
    }
}

impl Named for Composed {
    const KIND: &'static str = "machine";

    fn is_named(&self) -> bool {
        is_id(&self.system_id)
    }
}

impl Named for User {
    const KIND: &'static str = "user";

    fn is_named(&self) -> bool {
        !self.username.is_empty()
    }
}

impl Named for Tag {
    const KIND: &'static str = "tag";

    fn is_named(&self) -> bool {
        !self.name.is_empty()
    }
}

impl Named for IpAddress {
    const KIND: &'static str = "address";

    fn is_named(&self) -> bool {
        !self.ip.is_empty()
    }
}

impl Named for SubnetStatistics {
    const KIND: &'static str = "subnet";

    fn is_named(&self) -> bool {
        self.total_addresses > 0
    }
}

impl Named for BootResource {
    const KIND: &'static str = "image";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for DnsRecord {
    const KIND: &'static str = "DNS record";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for DnsResource {
    const KIND: &'static str = "DNS resource";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for Domain {
    const KIND: &'static str = "domain";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for Interface {
    const KIND: &'static str = "interface";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for IpRange {
    const KIND: &'static str = "IP range";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for ResourcePool {
    const KIND: &'static str = "resource pool";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for Space {
    const KIND: &'static str = "space";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for SshKey {
    const KIND: &'static str = "SSH key";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for Subnet {
    const KIND: &'static str = "subnet";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for Vlan {
    const KIND: &'static str = "VLAN";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for VmCluster {
    const KIND: &'static str = "VM cluster";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for VmHost {
    const KIND: &'static str = "VM host";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}

impl Named for Zone {
    const KIND: &'static str = "zone";

    fn is_named(&self) -> bool {
        is_number(self.id)
    }
}
