//! Who may do what, without RBAC: one function a question.

use super::World;
use super::id::Id;
use super::machine::Machine;
use super::people::User;

impl World {
    /// Whether the user is an administrator.
    pub fn is_admin(&self, user: Id<User>) -> bool {
        self.users.get(user).is_some_and(|user| user.superuser)
    }

    /// Seeing a machine: unowned, own, or administrator.
    pub fn may_view(&self, user: Id<User>, machine: &Machine) -> bool {
        machine.owner.is_none() || machine.owner == Some(user) || self.is_admin(user)
    }

    /// Using a machine: as seeing, and not locked.
    pub fn may_edit(&self, user: Id<User>, machine: &Machine) -> bool {
        !machine.locked && self.may_view(user, machine)
    }

    /// Locking and unlocking: as using, whether locked or not.
    pub fn may_lock(&self, user: Id<User>, machine: &Machine) -> bool {
        self.may_view(user, machine)
    }

    /// Changing what a machine is: administrators, and not locked.
    pub fn may_administer(&self, user: Id<User>, machine: &Machine) -> bool {
        !machine.locked && self.is_admin(user)
    }
}
