//! Where the demo plays: a lab with a MAAS, and the provider as a process with the rights of its own account.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use lab::{
    Control, LabDirectory, LabName, Level, Options, background,
    programs::{Program, Programs, Search, find_or_build},
};
use maas_client::Client as Maas;
use serde_json::{Value, json};

use super::template;
use crate::{
    lab::start,
    output::{self, Progress},
};

/// The bad server of the fleet.
pub const BAD_SERVER: &str = "a-small-03";
const FLEET: &str = include_str!("fleet.yaml");
/// Its administrator's; keys of an emulator protect nothing.
pub const KEY: &str = "demo:admin:key";
const NAMESPACE: &str = "capmaas-system";

/// A lab that is up.
pub struct Stage {
    /// Whether its machines boot.
    pub level: Level,
    pub directory: LabDirectory,
    pub control: Control,
    pub kubernetes: kube::Client,
    pub maas: Maas,
    programs: Programs,
    /// Where the emulated MAAS is told what shall go wrong.
    emulator: String,
    http: reqwest::Client,
    provider: Option<Child>,
    keep: bool,
}

impl Stage {
    /// Starts the lab; `keep` lets everything outlive this process.
    pub async fn up(name: LabName, level: Level, keep: bool) -> anyhow::Result<Self> {
        let directory = LabDirectory::of(&name);
        let fleet = tempfile::NamedTempFile::new().context("could not write the demo's fleet")?;
        fs::write(fleet.path(), FLEET).context("could not write the demo's fleet")?;
        let options = Options {
            name,
            controller_manager: true,
            maas: Some(lab::Maas { fleet: Some(fleet.path().to_owned()) }),
            ..Options::new(level)
        };
        let mut progress = Progress::default();
        start(options, &mut progress).await?;
        drop(progress);
        let entered = Self::enter(directory.clone(), level, keep).await;
        // Nobody will play in it.
        if entered.is_err()
            && let Err(error) = background::down(&directory).await
        {
            output::note(format!("could not remove the demo's lab, `metalshift lab down --name {}` does: {error}", directory.name()));
        }
        entered
    }

    async fn enter(directory: LabDirectory, level: Level, keep: bool) -> anyhow::Result<Self> {
        let control = Control::of(&directory);
        let wanted = [Program::Kubectl];
        let programs = tokio::task::spawn_blocking(move || find_or_build(&Search::from_environment(None), &wanted, &mut |_| {})).await??;
        let status = control.status().await?;
        let address = &status.components.iter().find(|component| component.name == lab::MAAS).context("the lab has no MAAS")?.address;
        Ok(Self {
            level,
            kubernetes: manager::connect(Some(&directory.kubeconfig())).await?,
            maas: Maas::builder(address, KEY)?.build()?,
            emulator: address.replace("/MAAS", "/emulator"),
            http: reqwest::Client::builder().no_proxy().build().context("could not make an HTTP client")?,
            programs,
            directory,
            control,
            provider: None,
            keep,
        })
    }

    /// Installs what we ship, all but the process itself, and gives that the kubeconfig of its account.
    pub async fn install(&self) -> anyhow::Result<PathBuf> {
        let (endpoint, key) = (("MAAS_ENDPOINT", self.maas_inside().await?), ("MAAS_API_KEY", KEY.to_owned()));
        let values = [endpoint, key, ("CAPMAAS_REPLICAS", "0".to_owned())].into();
        self.apply(&template::fill(template::COMPONENTS, &values)?).await?;
        let token = self.kubectl(&["create", "token", "capmaas-manager", "--namespace", NAMESPACE, "--duration", "24h"]).await?;
        let view = self.kubectl(&["config", "view", "--raw", "--output", "json"]).await?;
        let mut config: Value = serde_json::from_str(&view).context("kubectl printed no JSON")?;
        config["users"][0]["user"] = json!({"token": token.trim()});
        let kubeconfig = self.directory.path().join("provider.kubeconfig");
        fs::write(&kubeconfig, config.to_string()).context("could not write the provider's kubeconfig")?;
        Ok(kubeconfig)
    }

    /// Starts the provider, or starts it again.
    pub async fn start_provider(&mut self, kubeconfig: &Path) -> anyhow::Result<()> {
        let log = fs::File::options().append(true).create(true).open(self.provider_log()).context("could not open the provider's log")?;
        let program = std::env::current_exe().context("could not find the running program")?;
        let mut command = self.control.enter(None).await?;
        if !self.keep || self.level == Level::Nodes {
            // It ends with whoever started it. At level nodes that is the process that entered the lab.
            command.args(["setpriv", "--pdeathsig", "KILL", "--"]);
        }
        command.arg(program).args(["manage", "--leader-elect", "--machine-concurrency=10", "--health-addr=0", "--metrics-bind-addr=0"]);
        // Shorter than what we ship, so that nobody waits long after the kill, and long enough for a machine that has much else to do.
        command.args(["--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=1s"]);
        command.arg(format!("--leader-election-namespace={NAMESPACE}")).arg("--kubeconfig").arg(kubeconfig);
        command.envs([("MAAS_ENDPOINT", self.maas_inside().await?.as_str()), ("MAAS_API_KEY", KEY)]);
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

    /// Where its log is.
    pub fn provider_log(&self) -> PathBuf {
        self.directory.logs().join("provider.log")
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
        let posted = self.http.post(format!("{}/faults", self.emulator)).body(fault.to_string()).send().await;
        let answer = posted.context("the emulated MAAS does not answer")?;
        let (status, words) = (answer.status(), answer.text().await.unwrap_or_default());
        if status.is_success() { Ok(()) } else { bail!("the emulated MAAS refused a fault: {words}") }
    }

    /// Ends everything that goes wrong in MAAS.
    pub async fn heal(&self) -> anyhow::Result<()> {
        self.http.delete(format!("{}/faults", self.emulator)).send().await.context("the emulated MAAS does not answer")?;
        Ok(())
    }

    /// How often MAAS was asked to do this.
    pub async fn calls(&self, operation: &str) -> anyhow::Result<usize> {
        let answer = self.http.get(format!("{}/calls", self.emulator)).send().await.context("the emulated MAAS does not answer")?;
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
        fs::write(&file, documents).context("could not write what is to be applied")?;
        let file = file.display().to_string();
        self.kubectl(&[words, &["apply", "--server-side", "--force-conflicts", "--filename", &file]].concat()).await.map(drop)
    }
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
