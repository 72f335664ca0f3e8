//! The chart as a genuine Helm reads it.

use std::process::{Command, Output};

use lab::programs::{Search, find_or_build_helm};

use crate::management::{repository, text};

/// Runs helm with the chart as its last argument.
fn helm(arguments: &[&str], set: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(find_or_build_helm(&Search::from_environment(None), &mut |_| {}).unwrap());
    command.args(arguments).arg(repository().join("manifests/chart"));
    for value in set {
        command.args(["--set", value]);
    }
    for place in ["HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"] {
        command.env(place, home.path());
    }
    // No cluster of the person who runs the test is asked anything.
    command.env("KUBECONFIG", home.path().join("none")).output().unwrap()
}

/// The objects of the rendered chart, each as text.
fn rendered(set: &[&str]) -> Vec<String> {
    // What a server of today offers; without one, helm knows nothing of it.
    let policies = "--api-versions=admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy";
    let output = helm(&["template", "metalshift", "--namespace=provider", policies], set);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text(&output).split("\n---\n").map(str::to_owned).collect()
}

fn of_kind<'a>(objects: &'a [String], kind: &str) -> Vec<&'a String> {
    objects.iter().filter(|object| object.lines().any(|line| line == format!("kind: {kind}"))).collect()
}

#[test]
fn the_chart_has_nothing_that_lint_complains_of() {
    let output = helm(&["lint", "--strict"], &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("0 chart(s) failed"), "{}", text(&output));
}

#[test]
fn by_default_the_provider_looks_at_all_namespaces_and_has_no_maas_of_its_own() {
    let objects = rendered(&[]);
    assert_eq!(
        of_kind(&objects, "CustomResourceDefinition").len(),
        std::fs::read_dir(repository().join("manifests/crds")).unwrap().count()
    );
    assert_eq!(of_kind(&objects, "ClusterRoleBinding").len(), 2);
    assert_eq!(of_kind(&objects, "Secret").len(), 0);
    let deployment = of_kind(&objects, "Deployment")[0];
    assert!(deployment.contains("- --namespace=\n") && deployment.contains("namespace: provider"), "{deployment}");
    assert!(deployment.contains(&format!("image: metalshift/metalshift:v{}", env!("CARGO_PKG_VERSION"))), "{deployment}");
    assert_eq!(of_kind(&objects, "ValidatingAdmissionPolicy").len(), 1);
}

#[test]
fn with_namespaces_named_it_has_rights_in_those_alone() {
    let objects = rendered(&["watchNamespaces={red,blue}"]);
    assert_eq!(of_kind(&objects, "ClusterRoleBinding").len(), 1, "what is left is the uid of kube-system and the leftover webhooks");
    let bindings = of_kind(&objects, "RoleBinding");
    for namespace in ["red", "blue"] {
        assert!(bindings.iter().any(|binding| binding.contains(&format!("\n  namespace: {namespace}\n"))), "{namespace}");
    }
    assert!(of_kind(&objects, "Deployment")[0].contains("- --namespace=red,blue\n"));
}

#[test]
fn a_secret_that_exists_is_named_and_none_is_made() {
    let objects = rendered(&["maas.existingSecret=racks-key", "maas.endpoint=http://maas.example/MAAS"]);
    assert_eq!(of_kind(&objects, "Secret").len(), 0);
    assert!(of_kind(&objects, "Deployment")[0].contains("name: racks-key\n"));
}

#[test]
fn another_key_is_another_pod() {
    let annotation = |key: &str| {
        let objects = rendered(&["maas.endpoint=http://maas.example/MAAS", &format!("maas.apiKey={key}")]);
        let deployment = of_kind(&objects, "Deployment")[0];
        assert!(!deployment.contains(key), "the key itself is not there");
        deployment.lines().find(|line| line.trim().starts_with("checksum/credentials: ")).unwrap().to_owned()
    };
    assert_eq!(annotation("a:b:one"), annotation("a:b:one"));
    assert_ne!(annotation("a:b:one"), annotation("a:b:two"));
}

#[test]
fn variables_of_the_process_are_where_a_pod_has_them() {
    let objects = rendered(&["env[0].name=HTTPS_PROXY", "env[0].value=http://proxy.example:3128"]);
    assert!(
        of_kind(&objects, "Deployment")[0]
            .contains("        env:\n        - name: HTTPS_PROXY\n          value: http://proxy.example:3128\n")
    );
}

#[test]
fn an_endpoint_without_a_key_is_refused_with_what_to_do() {
    let output = helm(&["template", "metalshift"], &["maas.endpoint=http://maas.example/MAAS"]);
    assert!(!output.status.success());
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("maas.apiKey is empty: set it together with maas.endpoint, or name a Secret in maas.existingSecret"), "{words}");
}

#[test]
fn the_chart_is_refused_by_servers_that_would_refuse_the_rules_of_its_kinds() {
    let of = |version: &str| helm(&["template", "metalshift", &format!("--kube-version={version}")], &[]);
    assert!(of("1.31.0").status.success());
    let refused = of("1.30.14");
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("kubeVersion"), "{words}");
}

#[test]
fn the_chart_and_the_components_install_the_same_objects() {
    let of = |text: &str| {
        let field = |object: &str, name: &str| object.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let mut objects: Vec<_> =
            text.split("\n---\n").filter_map(|object| Some((field(object, "kind: ")?, field(object, "  name: ")?))).collect();
        objects.sort();
        objects
    };
    let components = std::fs::read_to_string(repository().join("manifests/infrastructure-maas/infrastructure-components.yaml")).unwrap();
    let mut components = of(&components);
    // helm makes it on demand: --create-namespace.
    components.retain(|(kind, _)| kind != "Namespace");
    let chart = rendered(&["maas.endpoint=http://maas.example/MAAS", "maas.apiKey=a:b:c"]).join("\n---\n");
    assert_eq!(of(&chart), components);
}
