//! What showing some machines needs of the world, copied, so that long lists are written while other calls go on.

use super::World;
use super::id::{Id, Table};
use super::machine::{Machine, NodeKind};

impl World {
    /// These machines and everything they are shown with. The rest of the world is not in it.
    #[must_use]
    pub fn excerpt(&self, machines: &[Id<Machine>]) -> World {
        let mut excerpt = World {
            users: self.users.clone(),
            zones: self.zones.clone(),
            pools: self.pools.clone(),
            tags: self.tags.clone(),
            domains: self.domains.clone(),
            names: self.names.clone(),
            records: self.records.clone(),
            fabrics: self.fabrics.clone(),
            vlans: self.vlans.clone(),
            spaces: self.spaces.clone(),
            subnets: self.subnets.clone(),
            vm_hosts: self.vm_hosts.clone(),
            ..World::empty(self.version, self.now, 0)
        };
        // Virtual machines name the machine of their host, networks their rack.
        let hosts = self.vm_hosts.values().filter_map(|host| host.host);
        let racks = self.machines.values().filter(|machine| machine.kind == NodeKind::RackController).map(|rack| rack.id);
        for id in machines.iter().copied().chain(hosts).chain(racks) {
            let Some(machine) = self.machines.get(id) else { continue };
            copy(&self.machines, &mut excerpt.machines, id);
            for interface in &machine.interfaces {
                copy(&self.interfaces, &mut excerpt.interfaces, *interface);
                for address in self.interfaces.get(*interface).into_iter().flat_map(|row| &row.addresses) {
                    copy(&self.addresses, &mut excerpt.addresses, *address);
                }
            }
        }
        excerpt
    }
}

fn copy<Row: Clone>(from: &Table<Row>, to: &mut Table<Row>, id: Id<Row>) {
    if let Some(row) = from.get(id) {
        to.add(Some(id.0), |_| row.clone());
    }
}
