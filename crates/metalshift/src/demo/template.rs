//! Fills the variables of the templates we ship, as `clusterctl` does: `${NAME}` and `${NAME:=default}`. Used by the demo, so that what it shows
//! is what people get.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

/// What is installed.
pub const COMPONENTS: &str = include_str!("../../../../manifests/infrastructure-maas/infrastructure-components.yaml");
/// A cluster.
pub const CLUSTER: &str = include_str!("../../../../manifests/infrastructure-maas/cluster-template.yaml");

/// The template with every variable replaced.
pub fn fill(template: &str, values: &BTreeMap<&str, String>) -> anyhow::Result<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, after) = after.split_once('}').context("a variable of the template has no end")?;
        let (name, default) = inside.split_once(":=").map_or((inside, None), |(name, default)| (name, Some(default)));
        filled.push_str(before);
        match (values.get(name), default) {
            (Some(value), _) => filled.push_str(value),
            (None, Some(default)) => filled.push_str(default),
            (None, None) => bail!("the template wants a value for {name}"),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_before_defaults_and_what_has_neither_is_named() {
        let values = BTreeMap::from([("NAME", "racks".to_owned()), ("COUNT", "3".to_owned())]);
        assert_eq!(fill("name: ${NAME}\ncount: ${COUNT:=1}\ntags: [${TAG:= }]\n", &values).unwrap(), "name: racks\ncount: 3\ntags: [ ]\n");
        assert!(fill("${MISSING}", &values).unwrap_err().to_string().contains("MISSING"));
    }
}
