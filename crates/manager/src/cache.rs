//! The objects of one kind as the watches last saw them. Watches write it, reconciles read it.
//!
//! Several watches (one a namespace) share a cache: a new list replaces only what its own watch covers. Iteration is in the order of
//! keys, because kube's store iterates in hash order, which differs from run to run.

use crate::object_key::ObjectKey;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
};

/// A shared view of the objects of one kind.
#[derive(Debug)]
pub struct Cache<K> {
    objects: Arc<RwLock<BTreeMap<ObjectKey, Arc<K>>>>,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { objects: Arc::clone(&self.objects) }
    }
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self { objects: Arc::default() }
    }
}

impl<K> Cache<K> {
    /// The object of this key, if it was seen.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// All objects, in the order of their keys.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn insert(&self, key: ObjectKey, object: Arc<K>) {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(key, object);
    }

    pub(crate) fn remove(&self, key: &ObjectKey) {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Removes what lies in `namespace` (everywhere if none) and was not in the list just read; returns it.
    pub(crate) fn keep_only(&self, namespace: Option<&str>, listed: &BTreeSet<ObjectKey>) -> Vec<Arc<K>> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let covered = |key: &ObjectKey| namespace.is_none_or(|namespace| key.namespace.as_deref() == Some(namespace));
        objects.extract_if(.., |key, _| covered(key) && !listed.contains(key)).map(|(_, object)| object).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_list_of_one_namespace_leaves_the_others_alone() {
        let cache = Cache::default();
        for (namespace, name) in [("a", "kept"), ("a", "gone"), ("b", "elsewhere")] {
            cache.insert(ObjectKey::namespaced(namespace, name), Arc::new(name));
        }
        let removed = cache.keep_only(Some("a"), &BTreeSet::from([ObjectKey::namespaced("a", "kept")]));
        assert_eq!(removed, [Arc::new("gone")]);
        assert_eq!(cache.all(), [Arc::new("kept"), Arc::new("elsewhere")]);
    }

    #[test]
    fn a_new_list_of_everything_replaces_everything() {
        let cache = Cache::default();
        cache.insert(ObjectKey::namespaced("b", "gone"), Arc::new(1));
        assert_eq!(cache.keep_only(None, &BTreeSet::new()), [Arc::new(1)]);
        assert!(cache.is_empty());
    }
}
