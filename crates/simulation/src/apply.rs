//! Server-side apply in a simple form: who owns which field, conflicts, force, and removal of what its owner no longer asks for.

use crate::{refusal::Refusal, store::Owners};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Who applies, and whether it takes fields from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    pub manager: String,
    pub force: bool,
}

type Path = Vec<String>;

/// Fields that are the object's identity or the server's own: never owned.
fn is_identity(path: &[String]) -> bool {
    match path {
        [field] => matches!(field.as_str(), "apiVersion" | "kind"),
        [metadata, field] if metadata == "metadata" => {
            matches!(
                field.as_str(),
                "name" | "namespace" | "uid" | "resourceVersion" | "generation" | "creationTimestamp" | "managedFields"
            )
        }
        _ => false,
    }
}

/// The key of the elements of a list that is a map or a set; none for an atomic list.
fn list_key(field: &str) -> Option<&'static str> {
    match field {
        "conditions" => Some("type"),
        "ownerReferences" => Some("uid"),
        "finalizers" => Some(""),
        _ => None,
    }
}

pub fn apply(before: &Value, mut owners: Owners, body: &Value, intent: &Intent) -> Result<(Value, Owners), Refusal> {
    let mut wanted = BTreeSet::new();
    leaves(body, &mut Vec::new(), &mut wanted);
    let mut after = before.clone();
    let taken: BTreeSet<Path> = wanted.iter().filter(|path| find(before, path) != find(body, path)).cloned().collect();
    for (other, owned) in owners.iter_mut().filter(|(other, _)| **other != intent.manager) {
        let disputed: BTreeSet<Path> = owned.intersection(&taken).cloned().collect();
        if let Some(path) = disputed.first().filter(|_| !intent.force) {
            let message = format!("Apply failed with 1 conflict: conflict with \"{other}\": .{}", path.join("."));
            return Err(Refusal { message, ..Refusal::conflict("", "") });
        }
        owned.retain(|path| !disputed.contains(path));
    }
    let mine = owners.insert(intent.manager.clone(), wanted.clone()).unwrap_or_default();
    for path in mine.difference(&wanted).filter(|path| !owners.values().any(|owned| owned.contains(*path))) {
        remove(&mut after, path);
    }
    for path in &wanted {
        if let Some(value) = find(body, path) {
            set(&mut after, path, value);
        }
    }
    for field in ["apiVersion", "kind"] {
        if let Some(value) = body.get(field) {
            after[field] = value.clone();
        }
    }
    if let Some(version) = body["metadata"].get("resourceVersion") {
        after["metadata"]["resourceVersion"] = version.clone();
    }
    Ok((after, owners))
}

/// The paths of all fields of a body that can be owned. Elements of keyed lists are steps like field names.
fn leaves(value: &Value, path: &mut Path, found: &mut BTreeSet<Path>) {
    let children = steps(value, path.last().map(String::as_str));
    match children {
        Some(children) if !children.is_empty() => {
            for (step, child) in children {
                path.push(step);
                if !is_identity(path) {
                    leaves(child, path, found);
                }
                path.pop();
            }
        }
        _ if path.is_empty() => {}
        _ => drop(found.insert(path.clone())),
    }
}

/// The named parts of a value, or none if it is one whole.
fn steps<'a>(value: &'a Value, field: Option<&str>) -> Option<Vec<(String, &'a Value)>> {
    match value {
        Value::Object(fields) => Some(fields.iter().map(|(name, child)| (name.clone(), child)).collect()),
        Value::Array(items) => {
            let key = list_key(field?)?;
            items.iter().map(|item| Some((element(item, key)?, item))).collect()
        }
        _ => None,
    }
}

fn element(item: &Value, key: &str) -> Option<String> {
    if key.is_empty() { item.as_str() } else { item[key].as_str() }.map(str::to_owned)
}

fn find<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().enumerate().try_fold(value, |value, (depth, step)| {
        let field = depth.checked_sub(1).map(|parent| path[parent].as_str());
        match value {
            Value::Object(fields) => fields.get(step),
            Value::Array(items) => {
                let key = list_key(field?)?;
                items.iter().find(|item| element(item, key).as_ref() == Some(step))
            }
            _ => None,
        }
    })
}

fn set(value: &mut Value, path: &[String], leaf: &Value) {
    fn into(value: &mut Value, field: Option<&str>, path: &[String], leaf: &Value) {
        let Some((step, rest)) = path.split_first() else {
            // An empty map asks for its own existence only, not for the end of what others put into it.
            if !(value.is_object() && leaf.as_object().is_some_and(Map::is_empty)) {
                *value = leaf.clone();
            }
            return;
        };
        if let Some(key) = field.and_then(list_key) {
            if !value.is_array() {
                *value = Value::Array(Vec::new());
            }
            let Value::Array(items) = value else { return };
            let position = items.iter().position(|item| element(item, key).as_ref() == Some(step)).unwrap_or_else(|| {
                items.push(if key.is_empty() { Value::from(step.as_str()) } else { Value::from_iter([(key, step.as_str())]) });
                items.len() - 1
            });
            into(&mut items[position], Some(step), rest, leaf);
        } else {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            into(&mut value[step.as_str()], Some(step), rest, leaf);
        }
    }
    into(value, None, path, leaf);
}

/// Removes a field, and the maps and elements it leaves empty.
fn remove(value: &mut Value, path: &[String]) {
    fn from(value: &mut Value, field: Option<&str>, path: &[String]) {
        let Some((step, rest)) = path.split_first() else { return };
        match value {
            Value::Object(fields) => {
                if let Some(child) = fields.get_mut(step) {
                    from(child, Some(step), rest);
                    if rest.is_empty() || is_empty(child) {
                        fields.remove(step);
                    }
                }
            }
            Value::Array(items) => {
                let Some(key) = field.and_then(list_key) else { return };
                if let Some(position) = items.iter().position(|item| element(item, key).as_ref() == Some(step)) {
                    from(&mut items[position], Some(step), rest);
                    if rest.is_empty() || is_empty(&items[position]) {
                        items.remove(position);
                    }
                }
            }
            _ => {}
        }
    }
    from(value, None, path);
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn by(manager: &str, force: bool) -> Intent {
        Intent { manager: manager.to_owned(), force }
    }

    #[test]
    fn what_its_owner_no_longer_asks_for_is_removed_and_the_rest_stays() {
        let start = json!({"spec": {"foreign": 1}});
        let (first, owners) = apply(&start, Owners::new(), &json!({"spec": {"a": 1, "b": 2}}), &by("me", false)).unwrap();
        let (second, _) = apply(&first, owners, &json!({"spec": {"a": 3}}), &by("me", false)).unwrap();
        assert_eq!(second, json!({"spec": {"foreign": 1, "a": 3}}));
    }

    #[test]
    fn a_field_of_another_owner_is_a_conflict_unless_forced() {
        let (object, owners) = apply(&json!({}), Owners::new(), &json!({"spec": {"a": 1}}), &by("one", false)).unwrap();
        let refused = apply(&object, owners.clone(), &json!({"spec": {"a": 2}}), &by("two", false)).unwrap_err();
        assert_eq!((refused.code.as_u16(), refused.reason), (409, "Conflict"));
        assert!(refused.message.contains("\"one\": .spec.a"), "{}", refused.message);
        let (taken, owners) = apply(&object, owners, &json!({"spec": {"a": 2}}), &by("two", true)).unwrap();
        assert_eq!(taken["spec"]["a"], 2);
        // The first owner lost it: asking for less removes nothing now.
        let (kept, _) = apply(&taken, owners, &json!({"spec": {"b": 1}}), &by("one", false)).unwrap();
        assert_eq!(kept["spec"], json!({"a": 2, "b": 1}));
    }

    #[test]
    fn two_owners_share_a_list_of_conditions() {
        let one = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let two = json!({"status": {"conditions": [{"type": "Paused", "status": "False"}]}});
        let (object, owners) = apply(&json!({}), Owners::new(), &one, &by("one", false)).unwrap();
        let (object, owners) = apply(&object, owners, &two, &by("two", false)).unwrap();
        assert_eq!(object["status"]["conditions"].as_array().map(Vec::len), Some(2));
        let (object, _) = apply(&object, owners, &json!({"status": {}}), &by("one", false)).unwrap();
        assert_eq!(object["status"]["conditions"], two["status"]["conditions"]);
    }
}
