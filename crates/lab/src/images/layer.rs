//! The one layer of all images: the programs, and of Debian what kube-proxy calls and a shell.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{
    LabError,
    command::run,
    programs::{Program, Programs},
};

/// kube-proxy sets limits of connection tracking, which a network namespace may read but not set. Its configuration from kubeadm
/// asks for them; leaving them alone is what kube-proxy offers for such places.
const KUBE_PROXY: &str = r#"#!/bin/sh
mkdir -p /tmp
for argument do
  shift
  case $argument in
    --config=*)
      sed -e 's/maxPerCore: null/maxPerCore: 0/' "${argument#--config=}" > /tmp/kube-proxy.conf
      argument=--config=/tmp/kube-proxy.conf ;;
  esac
  set -- "$@" "$argument"
done
exec /usr/lib/metalshift/kube-proxy "$@"
"#;

const NAMES_OF_KUBERNETES: [&str; 7] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubeadm", "kubectl"];
const NAMES_OF_BUSYBOX: [&str; 22] = [
    "sh", "ls", "cat", "echo", "sleep", "wget", "nslookup", "nc", "ping", "hostname", "ip", "mkdir", "rm", "cp", "mv", "ps", "sed", "grep",
    "head", "tail", "true", "date",
];
const NAMES_OF_IPTABLES: [&str; 6] = ["iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"];

/// Writes the layer as a tar archive.
pub(super) fn write(programs: &Programs, to: impl Write) -> Result<(), LabError> {
    let mut layer = Layer { archive: tar::Builder::new(to), directories: BTreeSet::new() };
    layer.file(programs.path(Program::Kubelet), "usr/local/bin/kubernetes")?;
    for name in NAMES_OF_KUBERNETES {
        layer.link("kubernetes", &format!("usr/local/bin/{name}"))?;
    }
    layer.script(KUBE_PROXY, "usr/local/bin/kube-proxy")?;
    layer.link("/usr/local/bin/kubernetes", "usr/lib/metalshift/kube-proxy")?;
    layer.file(programs.path(Program::CoreDns), "usr/local/bin/coredns")?;
    layer.file(programs.path(Program::Pause), "usr/local/bin/pause")?;
    layer.file(Path::new("/bin/busybox"), "bin/busybox")?;
    for name in NAMES_OF_BUSYBOX {
        layer.link("/bin/busybox", &format!("bin/{name}"))?;
    }
    let programs = ["/usr/sbin/nft", "/usr/sbin/xtables-nft-multi"].map(PathBuf::from);
    for program in &programs {
        layer.file(program, &program.display().to_string()[1..])?;
    }
    layer.libraries(&programs)?;
    for name in NAMES_OF_IPTABLES {
        layer.link("xtables-nft-multi", &format!("usr/sbin/{name}"))?;
    }
    layer.extensions()?;
    layer.text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", "etc/passwd", 0o644)?;
    layer.directory("tmp", 0o1777)?;
    // What does not fit on the disk may be noticed only when the last of it goes there.
    layer.archive.into_inner().and_then(|mut to| to.flush()).map_err(LabError::io("write", "the layer of the lab's images"))
}

struct Layer<W: Write> {
    archive: tar::Builder<W>,
    directories: BTreeSet<String>,
}

impl<W: Write> Layer<W> {
    fn file(&mut self, from: &Path, to: &str) -> Result<(), LabError> {
        let from = from.canonicalize().map_err(LabError::io("find", from))?;
        let mut file = File::open(&from).map_err(LabError::io("open", &from))?;
        let size = file.metadata().map_err(LabError::io("look at", &from))?.len();
        self.parents(to)?;
        let mut header = header(tar::EntryType::Regular, 0o755);
        header.set_size(size);
        self.archive.append_data(&mut header, to, &mut file).map_err(LabError::io("add", from))
    }

    fn script(&mut self, content: &str, to: &str) -> Result<(), LabError> {
        self.text(content, to, 0o755)
    }

    fn text(&mut self, content: &str, to: &str, mode: u32) -> Result<(), LabError> {
        self.parents(to)?;
        let mut header = header(tar::EntryType::Regular, mode);
        header.set_size(content.len() as u64);
        self.archive.append_data(&mut header, to, content.as_bytes()).map_err(LabError::io("add", to))
    }

    fn link(&mut self, target: &str, to: &str) -> Result<(), LabError> {
        self.parents(to)?;
        self.archive.append_link(&mut header(tar::EntryType::Symlink, 0o777), to, target).map_err(LabError::io("add", to))
    }

    fn directory(&mut self, path: &str, mode: u32) -> Result<(), LabError> {
        if !self.directories.insert(path.to_owned()) {
            return Ok(());
        }
        self.archive
            .append_data(&mut header(tar::EntryType::Directory, mode), format!("{path}/"), io::empty())
            .map_err(LabError::io("add", path))
    }

    fn parents(&mut self, path: &str) -> Result<(), LabError> {
        let separators: Vec<usize> = path.match_indices('/').map(|(index, _)| index).collect();
        separators.into_iter().try_for_each(|end| self.directory(&path[..end], 0o755))
    }

    /// The shared libraries that programs of Debian are linked with, at the paths its loader looks for them.
    fn libraries(&mut self, programs: &[PathBuf]) -> Result<(), LabError> {
        let listed = run("ldd", programs)?;
        // A line that ends with a colon names the program whose libraries follow.
        let lines = listed.lines().filter(|line| !line.ends_with(':'));
        let libraries = lines.filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
        for library in libraries {
            if self.directories.insert(format!("file {library}")) {
                self.file(Path::new(library), &library[1..])?;
            }
        }
        Ok(())
    }

    /// What iptables loads for each kind of match.
    fn extensions(&mut self) -> Result<(), LabError> {
        let found = run("find", ["/usr/lib", "-path", "*/xtables/*.so"])?;
        let mut extensions: Vec<PathBuf> = found.lines().map(PathBuf::from).collect();
        extensions.sort();
        for extension in &extensions {
            self.file(extension, &extension.display().to_string()[1..])?;
        }
        // Some need more than iptables itself does: the choice among several endpoints of a Service needs the library of mathematics.
        self.libraries(&extensions)
    }
}

/// Owner, time and order are the same every time, so the same programs make the same image.
fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(0);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}
