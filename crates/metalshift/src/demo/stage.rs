//! Where the demo plays: a lab with a MAAS, and the provider as a process with the rights of its own account.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use lab::{
    Control, LabDirectory, LabName, Level, Options,
    background::{self, Beginning},
    programs::{Program, Programs, Search, find_or_build},
};
use maas_client::Client as Maas;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::template;
use crate::{
    lab::start,
    output::{self, Progress},
};

/// The bad server of the fleet.
pub const BAD_SERVER: &str = "a-small-03";
const FLEET: &str = include_str!("fleet.yaml");
/// What stands in the fleet for its administrator's key, which is another one in every demo.
const KEY_OF_FLEET: &str = "demo:admin:key";
const NAMESPACE: &str = "capmaas-system";
/// A year: what is kept may be kept for long, and nobody makes another token for it.
const TOKEN_LASTS: &str = "8760h";

/// A lab that is up.
pub struct Stage {
    /// Whether its machines boot.
    pub level: Level,
    pub directory: LabDirectory,
    pub control: Control,
    pub kubernetes: kube::Client,
    pub maas: Maas,
    key: String,
    programs: Programs,
    /// Where the emulated MAAS is told what shall go wrong.
    emulator: String,
    http: reqwest::Client,
    provider: Option<Child>,
}

/// The fleet of a MAAS whose administrator has this key, as a file that is there until the lab has read it.
pub fn fleet(key: &str) -> anyhow::Result<NamedTempFile> {
    let file = NamedTempFile::new().context("could not write the demo's fleet")?;
    fs::write(file.path(), FLEET.replace(KEY_OF_FLEET, key)).context("could not write the demo's fleet")?;
    Ok(file)
}

/// How the lab shall be.
pub fn options(name: LabName, level: Level, keep: bool, fleet: &Path) -> Options {
    Options {
        name,
        controller_manager: true,
        // For whoever looks around later.
        audit: keep,
        maas: Some(lab::Maas { fleet: Some(fleet.to_owned()) }),
        ..Options::new(level)
    }
}

impl Stage {
    /// Starts the lab, with a MAAS whose administrator has this key. Who is interrupted drops it.
    pub async fn up(beginning: Beginning, directory: LabDirectory, level: Level, key: String) -> anyhow::Result<Self> {
        let mut progress = Progress::default();
        start(beginning, &mut progress, std::future::pending()).await?;
        drop(progress);
        let entered = Self::enter(directory.clone(), level, key).await;
        // Nobody will play in it.
        if entered.is_err()
            && let Err(error) = background::down(&directory).await
        {
            output::note(format!("could not remove the demo's lab, `metalshift lab down --name {}` does: {error}", directory.name()));
        }
        entered
    }

    async fn enter(directory: LabDirectory, level: Level, key: String) -> anyhow::Result<Self> {
        let control = Control::of(&directory);
        let wanted = [Program::Kubectl];
        let programs = tokio::task::spawn_blocking(move || find_or_build(&Search::from_environment(None), &wanted, &mut |_| {})).await??;
        let status = control.status().await?;
        let address = &status.components.iter().find(|component| component.name == lab::MAAS).context("the lab has no MAAS")?.address;
        Ok(Self {
            level,
            kubernetes: manager::connect(Some(&directory.kubeconfig())).await?,
            maas: Maas::builder(address, &key)?.build()?,
            key,
            emulator: address.replace("/MAAS", "/emulator"),
            http: reqwest::Client::builder().no_proxy().build().context("could not make an HTTP client")?,
            programs,
            directory,
            control,
            provider: None,
        })
    }

    /// Installs what we ship, all but the process itself, and gives that the kubeconfig of its account.
    pub async fn install(&self) -> anyhow::Result<PathBuf> {
        let (endpoint, key) = (("MAAS_ENDPOINT", self.maas_inside().await?), ("MAAS_API_KEY", self.key.clone()));
        let values = [endpoint, key, ("CAPMAAS_REPLICAS", "0".to_owned())].into();
        self.apply(&template::fill(template::COMPONENTS, &values)?).await?;
        let token = self.kubectl(&["create", "token", "capmaas-manager", "--namespace", NAMESPACE, "--duration", TOKEN_LASTS]).await?;
        let view = self.kubectl(&["config", "view", "--raw", "--output", "json"]).await?;
        let mut config: Value = serde_json::from_str(&view).context("kubectl printed no JSON")?;
        config["users"][0]["user"] = json!({"token": token.trim()});
        let kubeconfig = self.directory.path().join("provider.kubeconfig");
        lab::write_private(&kubeconfig, config.to_string())?;
        Ok(kubeconfig)
    }

    /// Starts the provider, or starts it again.
    pub async fn start_provider(&mut self, kubeconfig: &Path) -> anyhow::Result<()> {
        let log = fs::File::options().append(true).create(true).open(self.provider_log()).context("could not open the provider's log")?;
        let program = std::env::current_exe().context("could not find the running program")?;
        let mut command = self.control.enter(None).await?;
        // It ends with whoever started it. At level nodes that is the process that entered the lab.
        command
            .args(["setpriv", "--pdeathsig", "KILL", "--"])
            .arg(program)
            .arg("manage")
            .args(arguments(kubeconfig))
            .arg("--health-addr=0");
        // Shorter than what we ship, so that nobody waits long after the kill, and long enough for a machine that has much else to do.
        command.args(["--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=1s"]);
        command.envs(self.environment().await?);
        // What has the lab's mark ends with the lab, also when nobody waits for it any more.
        command.env("METALSHIFT_LAB", self.directory.path());
        // A Ctrl-C is the demo's to answer.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.provider = Some(command.spawn().context("could not start the provider")?);
        Ok(())
    }

    /// Starts a provider again that ended by itself, as a kubelet would: one that could not renew its lease ends. Its last words, then.
    pub async fn revive_provider(&mut self, kubeconfig: &Path) -> anyhow::Result<Option<String>> {
        let Some(provider) = &mut self.provider else { return Ok(None) };
        if provider.try_wait().context("could not look at the provider")?.is_none() {
            return Ok(None);
        }
        let log = fs::read_to_string(self.provider_log()).unwrap_or_default();
        let last_words = log.trim_end().lines().next_back().unwrap_or_default().to_owned();
        self.start_provider(kubeconfig).await?;
        Ok(Some(last_words))
    }

    /// Ends the provider without a word of warning.
    pub fn kill_provider(&mut self) -> anyhow::Result<()> {
        if let Some(mut provider) = self.provider.take() {
            provider.kill().context("could not kill the provider")?;
            provider.wait().context("could not wait for the provider's end")?;
        }
        Ok(())
    }

    /// Leaves the provider to the lab, which starts it again whenever it ends: nobody else does when the demo is over.
    pub async fn leave_provider(&mut self, kubeconfig: &Path) -> anyhow::Result<()> {
        if self.provider.is_none() {
            return Ok(());
        }
        self.kill_provider()?;
        self.control.add_provider(arguments(kubeconfig).into(), self.environment().await?).await.with_context(|| {
            let name = self.directory.name();
            format!("could not leave the provider to the lab, which is still there (`metalshift lab down --name {name}` removes it)")
        })
    }

    /// Variables of the provider: the MAAS and its key.
    async fn environment(&self) -> anyhow::Result<BTreeMap<String, String>> {
        Ok([("MAAS_ENDPOINT", self.maas_inside().await?), ("MAAS_API_KEY", self.key.clone())]
            .map(|(name, value)| (name.to_owned(), value))
            .into())
    }

    /// Where its log is.
    pub fn provider_log(&self) -> PathBuf {
        self.directory.logs().join(format!("{}.log", lab::PROVIDER))
    }

    /// The address of the MAAS for what runs in the lab.
    async fn maas_inside(&self) -> anyhow::Result<String> {
        if self.level == Level::Nodes {
            return Ok("http://maas.lab:5240/MAAS".to_owned());
        }
        let status = self.control.status().await?;
        let maas = status.components.into_iter().find(|component| component.name == lab::MAAS);
        Ok(maas.context("the lab has no MAAS")?.address)
    }

    /// Lets something go wrong in MAAS.
    pub async fn inject(&self, fault: &Value) -> anyhow::Result<()> {
        let posted = self.http.post(format!("{}/faults", self.emulator)).body(fault.to_string()).bearer_auth(&self.key).send().await;
        let answer = posted.context("the emulated MAAS does not answer")?;
        let (status, words) = (answer.status(), answer.text().await.unwrap_or_default());
        if status.is_success() { Ok(()) } else { bail!("the emulated MAAS refused a fault: {words}") }
    }

    /// Ends everything that goes wrong in MAAS.
    pub async fn heal(&self) -> anyhow::Result<()> {
        self.http
            .delete(format!("{}/faults", self.emulator))
            .bearer_auth(&self.key)
            .send()
            .await
            .context("the emulated MAAS does not answer")?;
        Ok(())
    }

    /// How often MAAS was asked to do this.
    pub async fn calls(&self, operation: &str) -> anyhow::Result<usize> {
        let answer = self
            .http
            .get(format!("{}/calls", self.emulator))
            .bearer_auth(&self.key)
            .send()
            .await
            .context("the emulated MAAS does not answer")?;
        let text = answer.text().await.context("the emulated MAAS does not answer")?;
        let journal: Value = serde_json::from_str(&text).context("the emulated MAAS answered no JSON")?;
        let calls = journal["calls"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(calls.iter().filter(|call| call["operation"] == json!(operation)).count())
    }

    /// A command beside the control plane, from where every cluster of the lab is reached; what it prints.
    pub async fn run(&self, words: &[&str], within: Duration) -> anyhow::Result<String> {
        let mut command: Command = self.control.enter(None).await?;
        command.args(words).process_group(0);
        output(command, within).await
    }

    /// The same on a machine.
    pub async fn run_on(&self, machine: &str, words: &[&str], within: Duration) -> anyhow::Result<String> {
        let mut command = self.control.enter(Some(machine)).await?;
        command.args(words).process_group(0);
        output(command, within).await
    }

    /// kubectl with the management cluster, unless a kubeconfig is among the words.
    pub async fn kubectl(&self, words: &[&str]) -> anyhow::Result<String> {
        let kubectl = self.programs.path(Program::Kubectl).display().to_string();
        self.run(&[&[kubectl.as_str()], words].concat(), Duration::from_secs(30)).await
    }

    /// Applies documents to the management cluster.
    pub async fn apply(&self, documents: &str) -> anyhow::Result<()> {
        self.apply_with(&[], documents).await
    }

    /// Applies documents to the cluster of a kubeconfig.
    pub async fn apply_with(&self, words: &[&str], documents: &str) -> anyhow::Result<()> {
        let file = self.directory.path().join("apply.yaml");
        lab::write_private(&file, documents)?;
        let file = file.display().to_string();
        self.kubectl(&[words, &["apply", "--server-side", "--force-conflicts", "--filename", &file]].concat()).await.map(drop)
    }
}

/// Flags of the provider, whoever runs it.
fn arguments(kubeconfig: &Path) -> [String; 5] {
    [
        "--leader-elect".to_owned(),
        "--machine-concurrency=10".to_owned(),
        "--metrics-bind-addr=0".to_owned(),
        format!("--leader-election-namespace={NAMESPACE}"),
        format!("--kubeconfig={}", kubeconfig.display()),
    ]
}

/// What a command prints; its own words if it fails.
async fn output(command: Command, within: Duration) -> anyhow::Result<String> {
    let mut command = tokio::process::Command::from(command);
    let named = command.as_std().get_args().last().unwrap_or_default().display().to_string();
    let run = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(within, run).await.with_context(|| format!("{named} took longer than {within:?}"))??;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
