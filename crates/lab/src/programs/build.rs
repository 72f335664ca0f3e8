//! Performs a recipe in a cache: what is already there is used, what is missing is built once, by one process at a time.
//! `find_or_build` calls it with the pinned recipe.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::ProgramsError;
use super::go::{self, Go, Run};
use super::progress::{Estimate, Progress};
use super::recipe::{Action, Compile, Copy, Recipe, Step};
use super::store::{Durations, Store};
use crate::kept::Partial;

/// Where a step's files are.
#[derive(Clone, Debug)]
pub struct Available {
    /// The directory with `bin/` and the copied files.
    pub directory: PathBuf,
    /// Whether this call built them.
    pub built: bool,
}

/// Makes the wanted steps of a recipe available, in their order.
///
/// All caches (at least one) are read, the first is written. `go` lists where Go may be; it is looked for only when something has to be built.
pub fn ensure(
    caches: &[PathBuf],
    go: &[PathBuf],
    recipe: &Recipe,
    wanted: &[&Step],
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Available>, ProgramsError> {
    let key = recipe.key();
    let stores: Vec<Store> = caches.iter().map(|cache| Store::new(cache, &key)).collect();
    let found: Vec<_> = wanted.iter().map(|step| find(&stores, step)).collect();
    let missing: Vec<&Step> = wanted.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(step, _)| *step).collect();
    let mut built = Vec::new();
    let own = &stores[0];
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|step| step.name.as_str()).collect();
        let go = Go::find(go, &names.join(", "))?;
        let _lock = own.lock(progress)?;
        // Whoever held the lock may have built it all.
        let record = own.record();
        let still_missing: Vec<_> = missing.into_iter().filter(|step| !own.holds(&record, &step.name)).collect();
        Builder { store: own, cache: &caches[0], go: &go, recipe }.build(&still_missing, progress)?;
        built.extend(still_missing.iter().map(|step| step.name.clone()));
        own.remove_unused();
    }
    for store in stores.iter().filter(|store| store.root().exists()) {
        store.note_use();
    }
    let available = wanted
        .iter()
        .zip(found)
        .map(|(step, found)| Available { directory: found.unwrap_or_else(|| own.root().to_owned()), built: built.contains(&step.name) });
    Ok(available.collect())
}

fn find(stores: &[Store], step: &Step) -> Option<PathBuf> {
    stores.iter().find(|store| store.holds(&store.record(), &step.name)).map(|store| store.root().to_owned())
}

struct Builder<'a> {
    store: &'a Store,
    cache: &'a Path,
    go: &'a Go,
    recipe: &'a Recipe,
}

/// The directories of one run.
struct Place {
    source: PathBuf,
    logs: PathBuf,
    partial: Partial,
}

impl Builder<'_> {
    fn build(&self, steps: &[&Step], progress: &mut dyn FnMut(Progress)) -> Result<(), ProgramsError> {
        if steps.is_empty() {
            return Ok(());
        }
        let place = self.prepare().map_err(|source| ProgramsError::writing(self.store.root(), "the programs", source))?;
        let mut durations = Durations::read(self.cache);
        let expected =
            |step: &&Step| durations.seconds.get(&step.name).map_or(step.effort.takes, |seconds| Duration::from_secs_f64(*seconds));
        let mut estimate = Estimate::new(steps.iter().map(expected).collect());
        let began = Instant::now();
        for (index, step) in steps.iter().enumerate() {
            let step_began = Instant::now();
            let mut report = |done: f64, begins: bool| {
                progress(Progress::Building {
                    step: index + 1,
                    of: steps.len(),
                    name: step.name.clone(),
                    elapsed: began.elapsed(),
                    left: estimate.left(step_began.elapsed(), done),
                    begins,
                });
            };
            report(0.0, true);
            let (files, done) = match &step.action {
                Action::Compile(compile) => self.compile(&place, step, compile, &mut |done| report(done, false))?,
                Action::Copy(copy) => self.copy(&place, step, copy, &mut |done| report(done, false))?,
            };
            let took = step_began.elapsed();
            self.store.finish(&step.name, files, self.go.version(), took.as_secs_f64())?;
            estimate.step_took(took);
            // What Go had compiled before says nothing about the next time everything is new.
            if done > 0.8 {
                durations.seconds.insert(step.name.clone(), took.as_secs_f64());
                durations.write(self.cache);
            }
        }
        Ok(())
    }

    fn prepare(&self) -> io::Result<Place> {
        let root = self.store.root();
        let place = Place { source: root.join("source"), logs: root.join("logs"), partial: self.store.partial()? };
        fs::create_dir_all(&place.logs)?;
        fs::create_dir_all(root.join("bin"))?;
        fs::create_dir(place.partial.join("go"))?;
        for file in &self.recipe.sources {
            let path = place.source.join(&file.path);
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(path, &file.content)?;
        }
        Ok(place)
    }

    fn compile(
        &self,
        place: &Place,
        step: &Step,
        compile: &Compile,
        report: &mut dyn FnMut(f64),
    ) -> Result<(Vec<PathBuf>, f64), ProgramsError> {
        let partial = place.partial.join(&compile.file);
        // -v lists each package as it is compiled, which is the progress to be seen.
        let mut arguments: Vec<String> = ["build", "-v"].into_iter().chain(go::FLAGS).map(str::to_owned).collect();
        arguments.push(format!("-ldflags={}", compile.link));
        arguments.extend(["-o".to_owned(), partial.display().to_string(), compile.package.clone()]);
        let log = self.run(place, step, &compile.module, &arguments, &mut |packages| {
            // The linker is not a package; it takes about a tenth of the time.
            report(f64::from(packages) / (f64::from(step.effort.packages) * 1.1));
        })?;
        let bin = self.store.root().join("bin");
        let publish = || {
            // A name that points to data which never reached the disk would have the right size after a power cut.
            File::open(&partial)?.sync_all()?;
            fs::rename(&partial, bin.join(&compile.file))?;
            for name in &compile.names {
                let link = place.partial.join(name);
                symlink(&compile.file, &link)?;
                fs::rename(&link, bin.join(name))?;
            }
            Ok(())
        };
        publish().map_err(|source| ProgramsError::writing(&bin, &step.name, source))?;
        let compiled = Tail::open(&log).map(|mut tail| tail.packages()).unwrap_or_default();
        let names = [&compile.file].into_iter().chain(&compile.names);
        Ok((names.map(|name| Path::new("bin").join(name)).collect(), f64::from(compiled) / f64::from(step.effort.packages.max(1))))
    }

    fn copy(&self, place: &Place, step: &Step, copy: &Copy, report: &mut dyn FnMut(f64)) -> Result<(Vec<PathBuf>, f64), ProgramsError> {
        let arguments = ["mod", "download", "-json", &copy.from].map(str::to_owned);
        let log = self.run(place, step, &copy.module, &arguments, &mut |_| report(0.0))?;
        let failed = |source| ProgramsError::writing(self.store.root(), &step.name, source);
        let Some(module) = module_directory(&log) else {
            return Err(ProgramsError::BuildFailed { step: step.name.clone(), words: go::last_words(&log), log });
        };
        let partial = place.partial.join(&copy.into);
        for (from, to) in &copy.files {
            copy_plain(&module.join(from), &partial.join(to)).map_err(failed)?;
        }
        let target = self.store.root().join(&copy.into);
        if target.exists() {
            fs::remove_dir_all(&target).map_err(failed)?;
        }
        fs::rename(&partial, &target).map_err(failed)?;
        let mut files = Vec::new();
        list(&target, Path::new(&copy.into), &mut files).map_err(failed)?;
        Ok((files, 0.0))
    }

    /// Runs go to its end, telling about once a second how many packages it has compiled; returns the log.
    fn run(
        &self,
        place: &Place,
        step: &Step,
        module: &str,
        arguments: &[String],
        report: &mut dyn FnMut(u32),
    ) -> Result<PathBuf, ProgramsError> {
        let log = place.logs.join(format!("{}.log", step.name.replace(' ', "-")));
        let run = Run {
            step: &step.name,
            arguments,
            directory: &place.source.join(module),
            log: &log,
            temporary: &place.partial.join("go"),
            caches: self.cache,
        };
        let mut running = self.go.start(&run)?;
        let mut tail = Tail::open(&log).map_err(|source| ProgramsError::writing(&log, &step.name, source))?;
        let mut reported = Instant::now();
        let succeeded = loop {
            if let Some(succeeded) =
                running.finished().map_err(|source| ProgramsError::CannotRun { program: PathBuf::from("go"), source })?
            {
                break succeeded;
            }
            if reported.elapsed() >= Duration::from_secs(1) {
                report(tail.packages());
                reported = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        if succeeded {
            return Ok(log);
        }
        let words = go::last_words(&log);
        if words.iter().any(|line| line.contains("no space left on device") || line.contains("disk quota exceeded")) {
            return Err(ProgramsError::DiskFull { step: step.name.clone(), path: self.cache.to_owned() });
        }
        Err(ProgramsError::BuildFailed { step: step.name.clone(), words, log })
    }
}

/// Counts the packages in the log of `go build -v` as it grows.
struct Tail {
    file: File,
    packages: u32,
}

impl Tail {
    fn open(log: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(log)?, packages: 0 })
    }

    fn packages(&mut self) -> u32 {
        let mut new = Vec::new();
        // Progress only: an unreadable log is found out when go ends.
        let _ = self.file.read_to_end(&mut new);
        let lines = String::from_utf8_lossy(&new).split('\n').filter(|line| !line.is_empty() && !line.contains(' ')).count();
        self.packages = self.packages.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.packages
    }
}

/// The directory in the answer of `go mod download -json`; other lines may stand before it.
fn module_directory(log: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(log).ok()?;
    let answer: serde_json::Value = serde_json::from_str(&text[text.find('{')?..=text.rfind('}')?]).ok()?;
    answer.get("Dir")?.as_str().map(PathBuf::from)
}

/// Copies a file, or the files of a directory; the module cache is read-only, the copies are not.
fn copy_plain(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory)?;
        }
        return fs::write(to, fs::read(from)?);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::write(to.join(entry.file_name()), fs::read(entry.path())?)?;
    }
    Ok(())
}

fn list(directory: &Path, name: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = name.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &name, files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}
