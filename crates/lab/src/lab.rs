//! A lab held by the process that uses it: how tests, benchmarks and the demo get one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
};

use kube::Client;
use tokio::{net::UnixListener, process::Child, sync::oneshot};

use crate::{
    LabDirectory, LabError, Level, Options,
    background::{self, Belongs, END_WITHIN, News},
    control::{self, Control},
    janitor::Janitor,
    leftovers,
    lock::LockFile,
    programs::{Programs, Search, find_or_build},
    supervisor::Supervisor,
};

/// A running lab. It goes down when this value is dropped, and when this process dies, however it dies.
pub struct Lab {
    directory: LabDirectory,
    programs: Arc<Programs>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    janitor: Option<Janitor>,
}

impl Lab {
    /// Starts a lab and waits until everything in it answers.
    pub async fn up(options: Options) -> Result<Self, LabError> {
        options.check()?;
        let directory = LabDirectory::of(&options.name);
        let beginning = directory.begin()?;
        let lock = directory.take_after_the_last().await?;
        let programs = programs_for(&options).await?;
        {
            let directory = directory.clone();
            blocking(move || leftovers::remove(&directory)).await?;
        }
        let janitor = Janitor::hire(&directory)?;
        // The lock is of who supervises the lab and goes with the lab: a process of its own at level nodes, else the thread.
        let lock = (options.level != Level::Nodes).then_some(lock);

        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = oneshot::channel();
        // A thread of its own: components die with the thread that started them, and a test's runtime ends with the test while
        // the lab serves the tests after it.
        let thread = thread::Builder::new()
            .name(format!("lab-{}", options.name))
            .spawn({
                let (directory, programs) = (directory.clone(), Arc::clone(&programs));
                move || {
                    let _lock = lock;
                    own(options, &directory, programs, ready, stopped);
                }
            })
            .map_err(LabError::io("start a thread for", directory.path()))?;
        let ended =
            || LabError::Ended { name: directory.name().to_string(), what: "it was starting".to_owned(), log: directory.supervisor_log() };
        match is_ready.await.map_err(|_| ended())? {
            Ok(()) => Ok(Self { directory, programs, stop: Some(stop), thread: Some(thread), janitor: Some(janitor) }),
            Err(error) => {
                blocking(move || {
                    let _ = thread.join();
                    clean(&directory, janitor, Some(beginning));
                })
                .await;
                Err(error)
            }
        }
    }

    /// A client that is the cluster's administrator.
    pub async fn client(&self) -> Result<Client, LabError> {
        connect(&self.kubeconfig_path()).await
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.directory.kubeconfig()
    }

    /// Where its files are.
    pub fn directory(&self) -> &LabDirectory {
        &self.directory
    }

    /// The real programs this lab was started from.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Says what its supervisor can do: status, machines.
    pub fn control(&self) -> Control {
        Control::of(&self.directory)
    }

    /// Ends the lab and waits until nothing of it is left. Dropping it does the same.
    pub async fn down(self) {
        blocking(move || drop(self)).await;
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(janitor) = self.janitor.take() {
            clean(&self.directory, janitor, None);
        }
    }
}

/// Removes what is left of a lab that has ended; what resists is left to the janitor. Its lock went with it, so somebody else may have
/// begun with a lab of this name already.
fn clean(directory: &LabDirectory, janitor: Janitor, beginning: Option<LockFile>) {
    let lock = if beginning.is_some() { directory.try_lock() } else { directory.take_to_clean() };
    let removed = match &lock {
        Ok(Some(_)) => leftovers::remove(directory).is_ok(),
        Ok(None) => true,
        Err(_) => false,
    };
    if removed {
        janitor.dismiss();
        return;
    }
    // It begins only when everybody else has let go.
    drop(lock);
    drop(beginning);
    drop(janitor);
}

/// The life of a lab on its own thread.
fn own(
    options: Options,
    directory: &LabDirectory,
    programs: Arc<Programs>,
    ready: oneshot::Sender<Result<(), LabError>>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime.map_err(LabError::io("start a runtime for", directory.path())) {
        Ok(runtime) => runtime,
        Err(error) => return drop(ready.send(Err(error))),
    };
    runtime.block_on(async {
        match Owned::start(options, directory, programs).await {
            Err(error) => drop(ready.send(Err(error))),
            Ok(owned) => {
                let _ = ready.send(Ok(()));
                owned.live(directory, stopped).await;
            }
        }
    });
}

/// What the thread of a lab holds.
enum Owned {
    /// Levels api and capi: this process is the supervisor.
    Components(Arc<Supervisor>, UnixListener),
    /// Level nodes: the supervisor is a process in namespaces of its own.
    Process(Child),
}

impl Owned {
    async fn start(options: Options, directory: &LabDirectory, programs: Arc<Programs>) -> Result<Self, LabError> {
        if options.level == Level::Nodes {
            let mut report = |news: News<'_>| tracing::debug!(lab = %directory.name(), ?news);
            return background::start(options, Belongs::ToThisThread, &mut report).await.map(Self::Process);
        }
        let report = |step: &str| tracing::debug!(lab = %directory.name(), step);
        let supervisor = Supervisor::start(&options, directory, programs, None, &report).await?;
        Ok(Self::Components(Arc::new(supervisor), control::listen(directory)?))
    }

    /// Serves the lab until it is stopped, or ends by itself, and waits until it has ended.
    async fn live(self, directory: &LabDirectory, stopped: oneshot::Receiver<()>) {
        match self {
            Self::Components(supervisor, listener) => {
                tokio::select! {
                    biased;
                    _ = stopped => {}
                    () = control::serve(listener, &supervisor) => {}
                }
                supervisor.stop().await;
            }
            Self::Process(mut supervisor) => tokio::select! {
                biased;
                _ = stopped => {
                    let _ = Control::of(directory).down().await;
                    let _ = tokio::time::timeout(END_WITHIN, supervisor.wait()).await;
                    let _ = supervisor.kill().await;
                }
                _ = supervisor.wait() => {}
            },
        }
    }
}

/// Finds the programs a lab runs, building what is missing.
pub(crate) async fn programs_for(options: &Options) -> Result<Arc<Programs>, LabError> {
    let search = Search::from_environment(options.programs.clone());
    let wanted = options.wanted_programs();
    blocking(move || find_or_build(&search, &wanted, &mut |progress| tracing::info!("{progress}")))
        .await
        .map(Arc::new)
        .map_err(LabError::from)
}

/// Runs what blocks away from the caller's runtime; a panic in it is passed on.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// A client from a kubeconfig file. The client does not repeat what fails: whoever waits for something says how long.
pub(crate) async fn connect(kubeconfig: &Path) -> Result<Client, LabError> {
    let unreadable = |error: kube::config::KubeconfigError| LabError::Manifest { path: kubeconfig.to_owned(), reason: error.to_string() };
    let content = kube::config::Kubeconfig::read_from(kubeconfig).map_err(unreadable)?;
    let mut config =
        kube::Config::from_custom_kubeconfig(content, &kube::config::KubeConfigOptions::default()).await.map_err(unreadable)?;
    config.default_retry = false;
    config.proxy_url = None;
    Client::try_from(config).map_err(LabError::kubernetes("connect to the lab"))
}
