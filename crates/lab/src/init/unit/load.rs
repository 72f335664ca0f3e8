//! Finding a unit: its file by precedence, links that make it an alias or mask it, drop-ins, and the links of `.wants` directories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::file::{self, Assignment};
use super::name::UnitName;
use crate::init::layout::Layout;

/// Whether a unit was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadState {
    /// It has a file, or is a target that exists by being wanted.
    Loaded,
    /// Nothing by this name.
    NotFound,
    /// A link to /dev/null, or an empty file.
    Masked,
    /// A file that cannot be read.
    Unreadable(String),
}

/// The text of a unit, put together from all its files.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its own name, also when it was asked for by an alias.
    pub name: UnitName,
    /// Whether it was found.
    pub state: LoadState,
    /// Its file.
    pub fragment: Option<PathBuf>,
    /// Files that change it, in the order they apply.
    pub drop_ins: Vec<PathBuf>,
    /// All assignments in that order.
    pub assignments: Vec<Assignment>,
    /// Lines that could not be read.
    pub complaints: Vec<String>,
    /// From `.wants` directories.
    pub wants: Vec<UnitName>,
    /// From `.requires` directories.
    pub requires: Vec<UnitName>,
}

/// Loads a unit by name.
pub fn load(layout: &Layout, asked: &UnitName) -> Source {
    let directories = layout.unit_directories();
    let mut source = Source {
        name: asked.clone(),
        state: LoadState::NotFound,
        fragment: None,
        drop_ins: Vec::new(),
        assignments: Vec::new(),
        complaints: Vec::new(),
        wants: Vec::new(),
        requires: Vec::new(),
    };
    if let Some(path) = find(&directories, asked) {
        source.name = alias_target(&path, asked);
        read_fragment(&mut source, path);
    }
    let names = if source.name == *asked { vec![asked.clone()] } else { vec![source.name.clone(), asked.clone()] };
    if source.state != LoadState::Masked {
        source.drop_ins = drop_ins(&directories, &names);
        for path in source.drop_ins.clone() {
            read_into(&mut source, &path);
        }
    }
    // The distribution's own links would start the services of the host whose root this machine shares.
    let linked = [layout.administrator_units(), layout.runtime_units()];
    for name in &names {
        source.wants.extend(links(&linked, name, "wants"));
        source.requires.extend(links(&linked, name, "requires"));
    }
    let wanted_target = source.name.suffix() == "target" && !(source.wants.is_empty() && source.requires.is_empty());
    if source.state == LoadState::NotFound && wanted_target {
        source.state = LoadState::Loaded;
    }
    source
}

/// The file of a unit: its own, or that of its template.
pub fn find(directories: &[PathBuf], name: &UnitName) -> Option<PathBuf> {
    let own = directories.iter().map(|directory| directory.join(name.as_str()));
    let template = name.template();
    let of_template = directories.iter().filter_map(|directory| template.as_ref().map(|template| directory.join(template.as_str())));
    own.chain(of_template).find(|path| path.symlink_metadata().is_ok())
}

/// The name behind a link, when the link gives a unit a second name.
fn alias_target(path: &Path, asked: &UnitName) -> UnitName {
    let target = fs::read_link(path).ok().and_then(|target| UnitName::parse(target.file_name()?.to_str()?).ok());
    match (target, asked.instance()) {
        (Some(target), Some(instance)) if target.is_template() => target.with_instance(instance),
        (Some(target), _) if target.suffix() == asked.suffix() && !target.is_template() => target,
        _ => asked.clone(),
    }
}

fn read_fragment(source: &mut Source, path: PathBuf) {
    let masked = fs::canonicalize(&path).is_ok_and(|target| target == Path::new("/dev/null"))
        || fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0);
    source.state = if masked { LoadState::Masked } else { LoadState::Loaded };
    if !masked {
        read_into(source, &path);
    }
    source.fragment = Some(path);
}

fn read_into(source: &mut Source, path: &Path) {
    match fs::read_to_string(path) {
        Ok(text) => {
            let parsed = file::parse(&text);
            source.assignments.extend(parsed.assignments);
            source.complaints.extend(parsed.complaints.into_iter().map(|complaint| format!("{}: {complaint}", path.display())));
        }
        Err(error) => source.state = LoadState::Unreadable(format!("{}: {error}", path.display())),
    }
}

/// `*.d/*.conf` of a unit, of its template, of its dashed prefixes and of its kind; a file name of a stronger directory hides the weaker.
fn drop_ins(directories: &[PathBuf], names: &[UnitName]) -> Vec<PathBuf> {
    let mut chosen: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
    for folder in names.iter().flat_map(drop_in_folders) {
        for directory in directories {
            let Ok(entries) = fs::read_dir(directory.join(&folder)) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                if path.extension().is_some_and(|extension| extension == "conf") {
                    chosen.entry(entry.file_name()).or_insert(path);
                }
            }
        }
    }
    chosen.into_values().filter(|path| fs::canonicalize(path).is_ok_and(|target| target != Path::new("/dev/null"))).collect()
}

fn drop_in_folders(name: &UnitName) -> Vec<String> {
    let mut folders = vec![format!("{name}.d")];
    folders.extend(name.template().map(|template| format!("{template}.d")));
    let mut stem = name.prefix();
    while let Some((shorter, _)) = stem.rsplit_once('-') {
        folders.push(format!("{shorter}-.{}.d", name.suffix()));
        stem = shorter;
    }
    folders.push(format!("{}.d", name.suffix()));
    folders
}

fn links(directories: &[PathBuf], name: &UnitName, kind: &str) -> Vec<UnitName> {
    let mut found: Vec<UnitName> = directories
        .iter()
        .filter_map(|directory| fs::read_dir(directory.join(format!("{name}.{kind}"))).ok())
        .flat_map(|entries| entries.flatten().filter_map(|entry| UnitName::parse(entry.file_name().to_str()?).ok()))
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(layout: &Layout, path: &str, text: &str) {
        let path = layout.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn name(text: &str) -> UnitName {
        UnitName::parse(text).unwrap()
    }

    fn values(source: &Source) -> Vec<&str> {
        source.assignments.iter().map(|assignment| assignment.value.as_str()).collect()
    }

    #[test]
    fn the_administrators_file_wins_and_drop_ins_follow_by_file_name() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        put(&layout, "/usr/lib/systemd/system/a.service", "[Service]\nExecStart=weak\n");
        put(&layout, "/etc/systemd/system/a.service", "[Service]\nExecStart=strong\n");
        put(&layout, "/etc/systemd/system/a.service.d/20.conf", "[Service]\nExecStart=late\n");
        put(&layout, "/usr/lib/systemd/system/a.service.d/10.conf", "[Service]\nExecStart=early\n");
        put(&layout, "/usr/lib/systemd/system/a.service.d/20.conf", "[Service]\nExecStart=hidden\n");
        put(&layout, "/etc/systemd/system/a.service.d/note.txt", "[Service]\nExecStart=no\n");
        assert_eq!(values(&load(&layout, &name("a.service"))), ["strong", "early", "late"]);
    }

    #[test]
    fn instances_come_from_their_template_and_its_drop_ins() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        put(&layout, "/etc/systemd/system/t@.service", "[Service]\nExecStart=%i\n");
        put(&layout, "/etc/systemd/system/t@.service.d/a.conf", "[Service]\nUser=x\n");
        let source = load(&layout, &name("t@one.service"));
        assert_eq!((source.state.clone(), source.name.as_str()), (LoadState::Loaded, "t@one.service"));
        assert_eq!(values(&source), ["%i", "x"]);
    }

    #[test]
    fn links_mask_alias_and_want() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        put(&layout, "/etc/systemd/system/real.service", "[Service]\nExecStart=x\n");
        symlink("real.service", layout.path("/etc/systemd/system/second.service")).unwrap();
        symlink("/dev/null", layout.path("/etc/systemd/system/off.service")).unwrap();
        fs::create_dir_all(layout.path("/etc/systemd/system/multi-user.target.wants")).unwrap();
        symlink("/etc/systemd/system/real.service", layout.path("/etc/systemd/system/multi-user.target.wants/real.service")).unwrap();
        assert_eq!(load(&layout, &name("second.service")).name, name("real.service"));
        assert_eq!(load(&layout, &name("off.service")).state, LoadState::Masked);
        assert_eq!(load(&layout, &name("none.service")).state, LoadState::NotFound);
        let target = load(&layout, &name("multi-user.target"));
        assert_eq!((target.state, target.wants), (LoadState::Loaded, vec![name("real.service")]));
    }

    #[test]
    fn links_of_the_distribution_start_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::at(directory.path());
        put(&layout, "/usr/lib/systemd/system/multi-user.target.wants/getty.target", "");
        assert!(load(&layout, &name("multi-user.target")).wants.is_empty());
    }
}
