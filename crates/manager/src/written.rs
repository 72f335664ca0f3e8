//! What this process last wrote to each object. A cache that is older than our own write has nothing to say about the object.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kube::{Resource, ResourceExt};

use crate::ObjectKey;

/// The newest versions this process wrote, of objects that still exist.
#[derive(Debug, Default)]
pub struct Written {
    versions: Mutex<BTreeMap<ObjectKey, (Option<String>, u64)>>,
}

impl Written {
    /// This was the answer to a write.
    pub fn note<K: Resource>(&self, object: &K) {
        if let Some(version) = version(object) {
            self.lock().insert(ObjectKey::of(object), (object.uid(), version));
        }
    }

    /// Whether we wrote something newer than this. Versions are numbers that grow; one that is none is never older.
    pub fn is_newer_than<K: Resource>(&self, object: &K) -> bool {
        let written = self.lock().get(&ObjectKey::of(object)).cloned();
        written.is_some_and(|(uid, newest)| uid == object.uid() && version(object).is_some_and(|version| version < newest))
    }

    /// The object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, (Option<String>, u64)>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn version<K: Resource>(object: &K) -> Option<u64> {
    object.resource_version()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn object(uid: &str, version: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some("one".to_owned());
        object.metadata.uid = Some(uid.to_owned());
        object.metadata.resource_version = Some(version.to_owned());
        object
    }

    #[test]
    fn only_an_older_version_of_the_same_object_is_outdated() {
        let written = Written::default();
        assert!(!written.is_newer_than(&object("a", "4")));
        written.note(&object("a", "10"));
        assert!(written.is_newer_than(&object("a", "9")));
        assert!(!written.is_newer_than(&object("a", "10")) && !written.is_newer_than(&object("b", "9")));
        written.forget(&ObjectKey::cluster_scoped("one"));
        assert!(!written.is_newer_than(&object("a", "9")));
    }
}
