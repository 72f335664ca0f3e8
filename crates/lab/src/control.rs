//! The supervisor's ear: a socket in the lab's directory that takes one request a line and answers in one line.
//! Used by `metalshift lab status|exec|down` and by whoever powers machines from outside the lab's namespaces.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    sync::Notify,
};

use crate::{
    Installation, LabDirectory, LabError, LabStatus, Level, MachineState, MachineStatus, command::search_path,
    control_groups::ControlGroup, init::process::SEARCH_PATH, machine::BOUNDING_SET, nodes::Nodes, supervisor::Supervisor,
};

/// Joins the control groups whose lists of processes stand before `--`, and becomes the command behind it.
const JOIN_GROUP: &str = r#"while [ "$1" != -- ]; do echo $$ > "$1"; shift; done; shift; exec "$@""#;

/// A supervisor that lives answers in milliseconds what it knows, also on a machine that is busy.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The pause after a caller could not be let in.
const REST: Duration = Duration::from_millis(200);

/// What can be asked of a supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Request {
    Status,
    Down,
    AddApiServer { name: String },
    AddProvider { arguments: Vec<String>, environment: BTreeMap<String, String> },
    AddMachine { machine: String, tag: Option<String> },
    RemoveMachine { machine: String },
    PowerOn { machine: String, user_data: Option<String> },
    PowerOff { machine: String, orderly: bool },
    Install { machine: String, installation: Installation },
    WaitWhile { machine: String, state: MachineState },
    Wipe { machine: String },
    JoinUserData { machine: String },
    SetName { name: String, addresses: Vec<Ipv4Addr> },
    ForwardDomains { server: SocketAddr, domains: Vec<String> },
}

/// Talks to the supervisor of one lab.
#[derive(Clone, Debug)]
pub struct Control {
    directory: LabDirectory,
}

impl Control {
    /// For the lab with these files.
    pub fn of(directory: &LabDirectory) -> Self {
        Self { directory: directory.clone() }
    }

    /// The lab as it is now.
    pub async fn status(&self) -> Result<LabStatus, LabError> {
        self.ask_soon(&Request::Status).await
    }

    /// Ends the lab; returns when its supervisor has begun to.
    pub async fn down(&self) -> Result<(), LabError> {
        self.ask_soon(&Request::Down).await
    }

    /// Starts one more API server, with objects of its own in the lab's etcd; the administrator's kubeconfig for it. Below level
    /// nodes this is a second cluster for the price of one process.
    pub async fn add_api_server(&self, name: &str) -> Result<PathBuf, LabError> {
        self.ask(&Request::AddApiServer { name: name.to_owned() }).await
    }

    /// Starts the provider with these flags of `metalshift manage`, and again whenever it ends; returns when it answers. It ends with the lab.
    pub async fn add_provider(&self, arguments: Vec<String>, environment: BTreeMap<String, String>) -> Result<(), LabError> {
        self.ask(&Request::AddProvider { arguments, environment }).await
    }

    /// Puts a machine into the rack: no power, empty disk, an address. Nothing happens when it is there already.
    pub async fn add_machine(&self, machine: &str) -> Result<(), LabError> {
        self.ask(&Request::AddMachine { machine: machine.to_owned(), tag: None }).await
    }

    /// The same for a machine that somebody else knows by another name, which `lab status` shows.
    pub async fn add_tagged_machine(&self, machine: &str, tag: &str) -> Result<(), LabError> {
        self.ask(&Request::AddMachine { machine: machine.to_owned(), tag: Some(tag.to_owned()) }).await
    }

    /// Gives a machine a new beginning: its power is cut and its disk emptied, it is named and wired as asked, and it boots.
    pub async fn install(&self, machine: &str, installation: &Installation) -> Result<(), LabError> {
        self.ask(&Request::Install { machine: machine.to_owned(), installation: installation.clone() }).await
    }

    /// Waits while a machine is in this state; what it is in then.
    pub async fn wait_while(&self, machine: &str, state: MachineState) -> Result<MachineStatus, LabError> {
        self.ask(&Request::WaitWhile { machine: machine.to_owned(), state }).await
    }

    /// Takes a machine out of the rack, disk and all.
    pub async fn remove_machine(&self, machine: &str) -> Result<(), LabError> {
        self.ask(&Request::RemoveMachine { machine: machine.to_owned() }).await
    }

    /// Gives a machine power. With a user-data it boots as a new instance, without one it boots what its disk holds.
    pub async fn power_on(&self, machine: &str, user_data: Option<&[u8]>) -> Result<(), LabError> {
        self.ask(&Request::PowerOn { machine: machine.to_owned(), user_data: user_data.map(|bytes| BASE64.encode(bytes)) }).await
    }

    /// Cuts a machine's power, or lets its services stop first; returns when it is off.
    pub async fn power_off(&self, machine: &str, orderly: bool) -> Result<(), LabError> {
        self.ask(&Request::PowerOff { machine: machine.to_owned(), orderly }).await
    }

    /// Off and on again, with the disk as it is.
    pub async fn power_cycle(&self, machine: &str) -> Result<(), LabError> {
        self.power_off(machine, false).await?;
        self.power_on(machine, None).await
    }

    /// Empties the disk of a machine without power.
    pub async fn wipe(&self, machine: &str) -> Result<(), LabError> {
        self.ask(&Request::Wipe { machine: machine.to_owned() }).await
    }

    /// A user-data that makes this machine a node of the management cluster.
    pub async fn join_user_data(&self, machine: &str) -> Result<String, LabError> {
        self.ask(&Request::JoinUserData { machine: machine.to_owned() }).await
    }

    /// Lets a name of the lab's resolver stand for these addresses and no others; for none, it is forgotten.
    pub async fn set_name(&self, name: &str, addresses: &[Ipv4Addr]) -> Result<(), LabError> {
        self.ask(&Request::SetName { name: name.to_owned(), addresses: addresses.to_vec() }).await
    }

    /// Lets the lab's resolver ask a server in the lab about these domains with all below them, and about no others; it does so
    /// within three seconds. Reverse domains, such as `0.20.10.in-addr.arpa`, are domains too.
    pub async fn forward_domains(&self, server: SocketAddr, domains: &[String]) -> Result<(), LabError> {
        self.ask(&Request::ForwardDomains { server, domains: domains.to_vec() }).await
    }

    /// A command that runs whatever is added to it beside the control plane, with KUBECONFIG set, or on a machine.
    pub async fn enter(&self, machine: Option<&str>) -> Result<Command, LabError> {
        let status = self.status().await?;
        if status.level != Level::Nodes {
            if let Some(machine) = machine {
                return Err(LabError::UnknownMachine {
                    lab: status.name,
                    machine: machine.to_owned(),
                    known: "none below level nodes".to_owned(),
                });
            }
            let mut command = Command::new("env");
            command.env("KUBECONFIG", self.directory.kubeconfig()).env("PATH", self.path_with_programs());
            return Ok(command);
        }
        let supervisor = self.supervisor_process().await?.to_string();
        let into_the_lab = ["nsenter", "--mount", "--net", "--pid", "--wdns=/", "--target", &supervisor, "--"];
        let Some(machine) = machine else {
            let mut command = Command::new(into_the_lab[0]);
            command.args(&into_the_lab[1..]).env("KUBECONFIG", self.directory.inside_kubeconfig()).env("PATH", self.path_with_programs());
            return Ok(command);
        };
        let Some(found) = status.machines.iter().find(|known| known.name == machine) else {
            let known = status.machines.iter().map(|machine| machine.name.clone()).collect::<Vec<_>>().join(", ");
            return Err(LabError::UnknownMachine { lab: status.name.clone(), machine: machine.to_owned(), known });
        };
        let Some(process) = found.process_id else {
            return Err(LabError::MachineState { machine: machine.to_owned(), reason: "has no power".to_owned() });
        };
        let group = ControlGroup::of(&self.directory.control_group(), machine)?;
        let mut command = Command::new(into_the_lab[0]);
        // What waits out here for the command does not count as the machine's: nobody in the lab could end it. What waits in the lab does.
        command.args(&into_the_lab[1..]).args(["sh", "-ec", JOIN_GROUP, "sh"]).args(group.process_lists()).arg("--");
        let namespaces = ["nsenter", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--wdns=/", "--target"];
        command.args(namespaces).arg(process.to_string()).args(["--", "setpriv", "--bounding-set", BOUNDING_SET, "--"]);
        // What the caller has set means nothing over there.
        let kept = std::env::var_os("TERM").map(|terminal| ("TERM", terminal));
        command.env_clear().envs(kept).envs([("PATH", SEARCH_PATH), ("HOME", "/root"), ("LANG", "C.UTF-8")]);
        Ok(command)
    }

    /// The caller's own programs come first, and kubectl and clusterctl are there in any case.
    fn path_with_programs(&self) -> OsString {
        let path = search_path();
        let places: Vec<PathBuf> = std::env::split_paths(&path).chain([self.directory.programs()]).collect();
        std::env::join_paths(places).unwrap_or(path)
    }

    /// The supervisor as this process sees it; the kernel translates between PID namespaces.
    async fn supervisor_process(&self) -> Result<i32, LabError> {
        let stream = self.connect().await?;
        stream.peer_cred().ok().and_then(|peer| peer.pid()).ok_or_else(|| self.directory.not_up())
    }

    async fn connect(&self) -> Result<UnixStream, LabError> {
        self.directory.check_place()?;
        let socket = self.directory.control_socket();
        UnixStream::connect(&socket).await.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => LabError::io("talk to the supervisor at", socket)(error),
            _ => self.directory.not_up(),
        })
    }

    /// For what needs no work: a supervisor that was stopped or hangs is told from one that works.
    async fn ask_soon<Answer: DeserializeOwned>(&self, request: &Request) -> Result<Answer, LabError> {
        let silent = |_| Err(LabError::Silent { name: self.directory.name().to_string() });
        tokio::time::timeout(ANSWERS_WITHIN, self.ask(request)).await.unwrap_or_else(silent)
    }

    async fn ask<Answer: DeserializeOwned>(&self, request: &Request) -> Result<Answer, LabError> {
        let name = self.directory.name();
        let broken = |error: io::Error| LabError::Supervisor(format!("the supervisor of lab {name} hung up: {error}"));
        let stream = self.connect().await?;
        let (reading, mut writing) = stream.into_split();
        let mut line = serde_json::to_vec(request).map_err(|error| LabError::Supervisor(error.to_string()))?;
        line.push(b'\n');
        writing.write_all(&line).await.map_err(broken)?;
        let mut answer = String::new();
        BufReader::new(reading).read_line(&mut answer).await.map_err(broken)?;
        serde_json::from_str::<Result<Answer, String>>(&answer)
            .map_err(|error| LabError::Supervisor(format!("the supervisor of lab {name} answered {answer:?}: {error}")))?
            .map_err(LabError::Supervisor)
    }
}

/// Opens the socket; requests wait in it until they are served.
pub(crate) fn listen(directory: &LabDirectory) -> Result<UnixListener, LabError> {
    let socket = directory.control_socket();
    UnixListener::bind(&socket).map_err(LabError::io("listen on", &socket))
}

/// Answers requests until somebody asks for the end.
pub(crate) async fn serve(listener: UnixListener, supervisor: &Arc<Supervisor>) {
    let down = Arc::new(Notify::new());
    loop {
        tokio::select! {
            biased;
            () = down.notified() => return,
            accepted = listener.accept() => {
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        after_refusal(&error).await;
                        continue;
                    }
                };
                let (supervisor, down) = (Arc::clone(supervisor), Arc::clone(&down));
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, &supervisor, &down).await {
                        tracing::debug!(%error, "a caller hung up");
                    }
                });
            }
        }
    }
}

/// A listener that cannot accept (no file descriptor is left) fails again at once, and would keep a processor busy with that.
pub(crate) async fn after_refusal(error: &io::Error) {
    tracing::warn!(%error, "a caller could not be let in");
    tokio::time::sleep(REST).await;
}

async fn answer(stream: UnixStream, supervisor: &Supervisor, down: &Notify) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading);
    let mut line = String::new();
    reading.read_line(&mut line).await?;
    let answer = match serde_json::from_str::<Request>(&line) {
        Ok(request @ Request::WaitWhile { .. }) => tokio::select! {
            answer = perform(request, supervisor, down) => answer,
            // Who does not wait any more hangs up; nobody says more than one line.
            _ = reading.read_u8() => return Ok(()),
        },
        Ok(request) => perform(request, supervisor, down).await,
        Err(error) => Err(format!("the supervisor does not know the request {line:?}: {error}")),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    writing.write_all(&line).await
}

async fn perform(request: Request, supervisor: &Supervisor, down: &Notify) -> Result<serde_json::Value, String> {
    match request {
        Request::Status => serde_json::to_value(supervisor.status()).map_err(|error| error.to_string()),
        Request::Down => {
            down.notify_one();
            Ok(serde_json::Value::Null)
        }
        Request::AddApiServer { name } => {
            let kubeconfig = supervisor.add_api_server(&name).await.map_err(|error| error.to_string())?;
            serde_json::to_value(kubeconfig).map_err(|error| error.to_string())
        }
        Request::AddProvider { arguments, environment } => {
            supervisor.add_provider(arguments, environment).await.map_err(|error| error.to_string())?;
            Ok(serde_json::Value::Null)
        }
        about_machines => match supervisor.nodes() {
            Some(nodes) => perform_on_machines(about_machines, nodes).await.map_err(|error| error.to_string()),
            None => Err("only level nodes has machines: start the lab with `metalshift lab up --level nodes`".to_owned()),
        },
    }
}

async fn perform_on_machines(request: Request, nodes: &Nodes) -> Result<serde_json::Value, LabError> {
    let rack = nodes.rack();
    match request {
        Request::AddMachine { machine, tag } => rack.add(&machine, tag)?,
        Request::Install { machine, installation } => rack.install(&machine, installation).await?,
        Request::WaitWhile { machine, state } => {
            let status = rack.wait_while(&machine, state).await?;
            return serde_json::to_value(status).map_err(|error| LabError::Supervisor(error.to_string()));
        }
        Request::RemoveMachine { machine } => rack.remove(&machine).await?,
        Request::PowerOn { machine, user_data } => {
            let user_data = user_data.map(|text| BASE64.decode(text)).transpose();
            let user_data = user_data.map_err(|error| LabError::Supervisor(format!("the user-data arrived damaged: {error}")))?;
            rack.power_on(&machine, user_data.as_deref())?;
        }
        Request::PowerOff { machine, orderly } => rack.power_off(&machine, orderly).await?,
        Request::Wipe { machine } => rack.wipe(&machine)?,
        Request::JoinUserData { machine } => return nodes.join_user_data(&machine).map(serde_json::Value::String),
        Request::SetName { name, addresses } => nodes.names().set(&name, &addresses)?,
        Request::ForwardDomains { server, domains } => nodes.resolver().forward(server, &domains)?,
        Request::Status | Request::Down | Request::AddApiServer { .. } | Request::AddProvider { .. } => {}
    }
    Ok(serde_json::Value::Null)
}
