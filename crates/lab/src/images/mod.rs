//! Container images of the lab: made from the programs at hand, so nothing is ever pulled. One layer holds every program; the
//! images differ only in their names and entry points. What containerd makes of them is kept in the cache, so that a machine's
//! containerd starts with all images in place.

mod archive;
mod layer;
mod store;

use serde_json::json;

pub(crate) use self::store::ensure;
use crate::programs::{Programs, recipe};

/// The image of the container that holds a pod's namespaces.
pub(crate) const PAUSE: &str = "registry.k8s.io/pause:3.10.1";

/// One image: the names it is known by and what it runs.
#[derive(Clone, Debug)]
struct Image {
    names: Vec<String>,
    runs: Runs,
}

impl Image {
    /// As the archive describes it.
    fn described(&self) -> archive::Image {
        let (entry_point, command) = match self.runs {
            Runs::Always(program) => (Some([program]), None),
            Runs::ByDefault(program) => (None, Some([program])),
        };
        let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        archive::Image { names: self.names.clone(), runs: json!({"Entrypoint": entry_point, "Cmd": command, "Env": [path]}) }
    }
}

/// What a container does that names no command.
#[derive(Clone, Copy, Debug)]
enum Runs {
    /// This program, whatever arguments are given.
    Always(&'static str),
    /// This program, unless another one is given.
    ByDefault(&'static str),
}

/// Every image a cluster of this version asks for, under the names kubeadm and people use.
fn images(programs: &Programs) -> Vec<Image> {
    let kubernetes = programs.kubernetes_version();
    let control_plane = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"];
    let mut images: Vec<Image> = control_plane
        .into_iter()
        .map(|name| Image { names: vec![format!("registry.k8s.io/{name}:{kubernetes}")], runs: Runs::Always(name) })
        .collect();
    images.extend([
        Image { names: vec![PAUSE.to_owned()], runs: Runs::Always("pause") },
        // kubeadm names the etcd it was released with, whatever is inside.
        Image { names: vec!["registry.k8s.io/etcd:3.6.6-0".to_owned()], runs: Runs::Always("etcd") },
        Image {
            names: vec![
                format!("registry.k8s.io/coredns/coredns:{}", recipe::coredns_version()),
                format!("docker.io/coredns/coredns:{}", recipe::coredns_version().trim_start_matches('v')),
            ],
            runs: Runs::Always("coredns"),
        },
        Image {
            names: vec!["docker.io/library/busybox:latest".to_owned(), "docker.io/library/busybox:stable".to_owned()],
            runs: Runs::ByDefault("sh"),
        },
    ]);
    images
}
