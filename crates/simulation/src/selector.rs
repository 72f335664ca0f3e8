//! Which objects a list or watch is about: namespace, labels, name.

use crate::refusal::Refusal;
use serde_json::Value;

/// A parsed selection.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    pub namespace: Option<String>,
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

#[derive(Debug, Clone)]
struct Requirement {
    name: String,
    value: Option<String>,
    wanted: bool,
}

impl Requirement {
    fn parse(text: &str) -> Self {
        let made = |name: &str, value: Option<&str>, wanted| Self { name: name.to_owned(), value: value.map(str::to_owned), wanted };
        if let Some((name, value)) = text.split_once("!=") {
            made(name, Some(value), false)
        } else if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            made(name, Some(value), true)
        } else if let Some(name) = text.strip_prefix('!') {
            made(name, None, false)
        } else {
            made(text, None, true)
        }
    }

    fn matches(&self, actual: Option<&str>) -> bool {
        let meets = match &self.value {
            Some(value) => actual == Some(value),
            None => actual.is_some(),
        };
        meets == self.wanted
    }
}

impl Selector {
    pub fn new(namespace: Option<&str>, labels: Option<&str>, fields: Option<&str>) -> Result<Self, Refusal> {
        let parse = |text: Option<&str>| -> Vec<Requirement> {
            text.unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty()).map(Requirement::parse).collect()
        };
        if labels.is_some_and(|labels| labels.contains('(')) {
            return Err(Refusal::bad_request("set-based label selectors are not known here"));
        }
        let fields = parse(fields);
        if let Some(unknown) = fields.iter().find(|field| !matches!(field.name.as_str(), "metadata.name" | "metadata.namespace")) {
            return Err(Refusal::bad_request(format!("the field selector {} is not known here", unknown.name)));
        }
        Ok(Self { namespace: namespace.map(str::to_owned), labels: parse(labels), fields })
    }

    pub fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let in_namespace = self.namespace.as_deref().is_none_or(|namespace| metadata["namespace"].as_str() == Some(namespace));
        in_namespace
            && self.labels.iter().all(|label| label.matches(metadata["labels"][label.name.as_str()].as_str()))
            && self.fields.iter().all(|field| field.matches(metadata[field.name.trim_start_matches("metadata.")].as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_chosen_by_namespace_labels_and_name() {
        let object = json!({"metadata": {"name": "w", "namespace": "a", "labels": {"team": "blue"}}});
        let matches = |namespace, labels, fields| Selector::new(namespace, labels, fields).unwrap().matches(&object);
        assert!(matches(Some("a"), Some("team=blue,!other"), Some("metadata.name=w")));
        assert!(!matches(Some("b"), None, None));
        assert!(!matches(None, Some("team!=blue"), None));
        assert!(!matches(None, Some("other"), None));
        assert!(!matches(None, None, Some("metadata.name=x")));
        assert!(Selector::new(None, Some("team in (a,b)"), None).is_err());
    }
}
