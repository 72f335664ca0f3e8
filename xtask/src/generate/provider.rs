//! The provider as something to install: the components that `clusterctl` takes and the Helm chart. Both are filled from the same files
//! beside this one, where `%{name}` stands for what differs. Used by `generate`.

use std::fmt::Write as _;

use anyhow::{Context as _, ensure};

use super::{Page, rights};

/// Where everything is that is installed together.
pub const COMPONENTS: &str = "manifests/infrastructure-maas";
/// Where the chart is.
pub const CHART: &str = "manifests/chart";

const REMARK: &str = "# Written by `cargo xtask generate`; changes made here are lost.\n";
const ACCOUNT: &str = include_str!("provider/account.yaml");
const EVERYWHERE: &str = include_str!("provider/everywhere.yaml");
const CREDENTIALS: &str = include_str!("provider/credentials.yaml");
const DEPLOYMENT: &str = include_str!("provider/deployment.yaml");
const RULES: &str = include_str!("provider/rules.yaml");
const GLOBAL_RULES: &str = include_str!("provider/global-rules.yaml");
const OWN_RULES: &str = include_str!("provider/own-rules.yaml");
const METRICS: &str = include_str!("provider/metrics.yaml");

/// The oldest release of Kubernetes that takes the kinds: the functions about addresses in their rules came with 1.30, and a server takes
/// what the release before it knows.
const KUBERNETES: &str = "1.31";

/// What stands for a place in one of the files.
type Filling<'a> = (&'a str, &'a str);

/// The components and the chart; `kinds` and `admission` are their manifests.
pub fn files(version: &str, kinds: &[Page], admission: &[Page]) -> anyhow::Result<Vec<Page>> {
    let mut files = vec![(format!("{COMPONENTS}/infrastructure-components.yaml"), components(version, kinds, admission)?)];
    files.extend(chart(version, kinds, admission)?);
    files.push(rights::page(&[
        ("In every namespace, or in those that it is told to look at", RULES),
        ("In its own namespace", OWN_RULES),
        ("In the whole cluster", GLOBAL_RULES),
    ])?);
    Ok(files)
}

/// One file for `clusterctl`, and for `kubectl` after its variables were filled in.
fn components(version: &str, kinds: &[Page], admission: &[Page]) -> anyhow::Result<String> {
    // Spelled out, as the kubelet would: clusterctl refuses a name without its first part.
    let image = format!("docker.io/metalshift/metalshift:v{version}");
    let fillings = [
        ("namespace", "capmaas-system"),
        ("rules", RULES),
        ("global_rules", GLOBAL_RULES),
        ("own_rules", OWN_RULES),
        ("replicas", "${CAPMAAS_REPLICAS:=1}"),
        ("image", &image),
        ("pull_policy", "IfNotPresent"),
        ("watch_namespaces", ""),
        ("watch_filter", "${CAPMAAS_WATCH_FILTER:= }"),
        ("machine_concurrency", "${CAPMAAS_MACHINE_CONCURRENCY:=10}"),
        ("sync_period", "${CAPMAAS_SYNC_PERIOD:=120m}"),
        ("log_format", "${CAPMAAS_LOG_FORMAT:=json}"),
        ("log_level", "${CAPMAAS_LOG_LEVEL:=0}"),
        ("credentials", "capmaas-manager-bootstrap-credentials"),
        ("annotations", ""),
        ("env", ""),
        ("memory_limit", "256Mi"),
        ("cpu_request", "20m"),
        ("memory_request", "32Mi"),
    ];
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  labels:\n    cluster.x-k8s.io/provider: infrastructure-maas\n  \
                     name: capmaas-system\n";
    let mut documents = vec![namespace.to_owned()];
    for (path, text) in kinds.iter().chain(admission) {
        ensure!(!text.contains("${"), "{path} holds what clusterctl takes for a variable");
        documents.push(without_remark(text));
    }
    for part in [ACCOUNT, EVERYWHERE, CREDENTIALS, DEPLOYMENT, METRICS] {
        documents.push(fill(part, &fillings)?);
    }
    Ok(format!("{REMARK}{}", documents.join("---\n")))
}

fn chart(version: &str, kinds: &[Page], admission: &[Page]) -> anyhow::Result<Vec<Page>> {
    let fillings = [
        ("namespace", "{{ .Release.Namespace }}"),
        ("rules", RULES),
        ("global_rules", GLOBAL_RULES),
        ("own_rules", OWN_RULES),
        ("replicas", "{{ .Values.replicas }}"),
        ("image", "{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf \"v%s\" .Chart.AppVersion) }}"),
        ("pull_policy", "{{ .Values.image.pullPolicy }}"),
        ("watch_namespaces", "{{ join \",\" .Values.watchNamespaces }}"),
        ("watch_filter", "{{ .Values.watchFilter }}"),
        ("machine_concurrency", "{{ .Values.machineConcurrency }}"),
        ("sync_period", "{{ .Values.syncPeriod }}"),
        ("log_format", "{{ .Values.log.format }}"),
        ("log_level", "{{ .Values.log.level }}"),
        ("credentials", "{{ .Values.maas.existingSecret | default \"capmaas-manager-bootstrap-credentials\" }}"),
        // A process has the key it was started with: another one is another pod.
        ("annotations", "checksum/credentials: {{ printf \"%s %s\" .Values.maas.endpoint .Values.maas.apiKey | sha256sum }}\n"),
        ("env", "{{- with .Values.env }}\nenv:\n{{- toYaml . | nindent 8 }}\n{{- end }}\n"),
        ("memory_limit", "{{ .Values.resources.limits.memory }}"),
        ("cpu_request", "{{ .Values.resources.requests.cpu }}"),
        ("memory_request", "{{ .Values.resources.requests.memory }}"),
    ];
    let everywhere = fill(EVERYWHERE, &fillings)?;
    let mut crds = String::new();
    for (path, text) in kinds {
        ensure!(!text.contains("{{"), "{path} holds what Helm takes for a template");
        // Kinds and all their objects would go with the release otherwise, and machines with them.
        let kept = without_remark(text).replacen("metadata:\n", "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n", 1);
        write!(crds, "---\n{kept}")?;
    }
    let policies = admission.iter().map(|(_, text)| without_remark(text)).collect::<Vec<_>>().join("---\n");
    let served = "{{- if and .Values.admissionPolicy (.Capabilities.APIVersions.Has \"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy\") }}\n";
    let page = |name: &str, text: String| (format!("{CHART}/{name}"), format!("{REMARK}{text}"));
    let template = |name: &str, text: &str| page(&format!("templates/{name}"), text.to_owned());
    Ok(vec![
        page("Chart.yaml", description(version)),
        page("values.yaml", include_str!("provider/chart/values.yaml").to_owned()),
        (format!("{CHART}/templates/NOTES.txt"), include_str!("provider/chart/NOTES.txt").to_owned()),
        template("crds.yaml", &crds),
        template("admission.yaml", &format!("{served}{policies}{{{{- end }}}}\n")),
        template("account.yaml", &fill(ACCOUNT, &fillings)?),
        template("namespaces.yaml", &fill(include_str!("provider/chart/namespaces.yaml"), &[("everywhere", &everywhere)])?),
        template("credentials.yaml", include_str!("provider/chart/credentials.yaml")),
        template("deployment.yaml", &fill(DEPLOYMENT, &fillings)?),
        template("metrics.yaml", &format!("{{{{- if .Values.metricsService }}}}\n{}{{{{- end }}}}\n", fill(METRICS, &fillings)?)),
    ])
}

fn description(version: &str) -> String {
    format!(
        "apiVersion: v2\nname: metalshift\ndescription: The MAAS provider of Cluster API\ntype: application\nversion: {version}\n\
         appVersion: {version}\nkubeVersion: \">={KUBERNETES}.0-0\"\n"
    )
}

fn without_remark(text: &str) -> String {
    text.split_inclusive('\n').skip_while(|line| line.starts_with('#')).collect()
}

/// The text with every place filled. A place that has a line for itself takes as many lines as its filling has, as far in as it is.
fn fill(text: &str, fillings: &[Filling<'_>]) -> anyhow::Result<String> {
    let mut filled = String::new();
    for line in text.lines() {
        let whole = line.trim().strip_prefix("%{").and_then(|rest| rest.strip_suffix('}')).filter(|name| !name.contains('}'));
        if let Some(name) = whole {
            let indent = &line[..line.len() - line.trim_start().len()];
            for part in filling(fillings, name)?.lines() {
                writeln!(filled, "{}", format!("{indent}{part}").trim_end())?;
            }
            continue;
        }
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("%{") {
            let (name, after) = after.split_once('}').with_context(|| format!("a place without an end: {line}"))?;
            filled.extend([before, filling(fillings, name)?]);
            rest = after;
        }
        writeln!(filled, "{rest}")?;
    }
    Ok(filled)
}

fn filling<'a>(fillings: &[Filling<'a>], name: &str) -> anyhow::Result<&'a str> {
    fillings.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).with_context(|| format!("nothing stands for %{{{name}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_its_own_is_filled_with_lines_as_far_in_as_it_is() {
        let filled = fill("rules:\n  %{rules}\nname: a-%{name}-b\n", &[("rules", "- one\n- two\n"), ("name", "x")]).unwrap();
        assert_eq!(filled, "rules:\n  - one\n  - two\nname: a-x-b\n");
        assert_eq!(fill("a:\n  %{nothing}\nb: 1\n", &[("nothing", "")]).unwrap(), "a:\nb: 1\n");
    }

    #[test]
    fn a_place_that_nothing_stands_for_is_an_error() {
        assert!(fill("a: %{unknown}\n", &[]).unwrap_err().to_string().contains("%{unknown}"));
        assert!(fill("a: %{open\n", &[("open", "")]).is_err());
    }
}
