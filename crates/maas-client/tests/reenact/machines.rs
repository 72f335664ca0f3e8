//! Exchanges about machines.

use std::collections::BTreeMap;

use maas_client::{
    Allocate, BridgeType, Commission, Deploy, Error, MachineFilter, MachineSettings, MachineStatus, MebiBytes, NewMachine, PowerOff,
    PowerState, Release, SystemId, Test, UserData,
};
use serde_json::{Value, json};

use super::{Request, encoded, fields::Fields};

type Outcome = Option<Result<Value, Error>>;

pub async fn again(request: &Request<'_>, query: &mut Fields, form: &mut Fields) -> Outcome {
    match request.segments {
        ["machines"] => collection(request, query, form).await,
        ["machines", id] => one(request, &SystemId::from(*id), query, form).await,
        _ => None,
    }
}

async fn collection(request: &Request<'_>, query: &mut Fields, form: &mut Fields) -> Outcome {
    let machines = request.client.machines();
    Some(match (request.method, request.operation) {
        ("GET", "") => encoded(machines.list(&filter(query)).await),
        ("GET", "list_allocated") => encoded(machines.list_allocated().await),
        ("GET", "power_parameters") => {
            let ids = query.ids("id");
            machines.power_parameters(&ids).await.map(|all| {
                let shown = |parameters: &maas_client::SecretParameters| -> Value {
                    parameters.names().map(|name| (name.to_owned(), parameters.expose(name).unwrap().clone())).collect()
                };
                all.iter().map(|(id, parameters)| (id.to_string(), shown(parameters))).collect()
            })
        }
        ("POST", "allocate") => encoded(machines.allocate(&allocate(form)).await),
        ("POST", "release") => {
            let (ids, comment) = (form.ids("machines"), form.text("comment"));
            encoded(machines.release(&ids, comment.as_deref()).await)
        }
        ("POST", "") => {
            let machine = NewMachine {
                mac_addresses: form.list("mac_addresses"),
                commission: form.parsed("commission"),
                deployed: form.parsed("deployed"),
                settings: settings(form),
            };
            encoded(machines.create(&machine).await)
        }
        _ => return None,
    })
}

async fn one(request: &Request<'_>, id: &SystemId, query: &mut Fields, form: &mut Fields) -> Outcome {
    let machine = request.client.machine(id);
    if request.operation == "set_workload_annotations" {
        let annotations: BTreeMap<String, String> = form.rest().into_iter().collect();
        return Some(encoded(machine.set_workload_annotations(&annotations).await));
    }
    let comment = if request.method == "POST" && !matches!(request.operation, "deploy" | "release") { form.text("comment") } else { None };
    let comment = comment.as_deref();
    Some(match (request.method, request.operation) {
        ("GET", "") => encoded(machine.read().await),
        ("PUT", "") => encoded(machine.update(&settings(form)).await),
        ("DELETE", "") => encoded(machine.delete(query.yes("force")).await),
        ("GET", "query_power_state") => machine.query_power_state().await.map(|state| json!({ "state": String::from(state) })),
        ("GET", "power_parameters") => machine
            .power_parameters()
            .await
            .map(|all| all.names().map(|name| (name.to_owned(), all.expose(name).unwrap().clone())).collect()),
        ("POST", "deploy") => encoded(machine.deploy(&deploy(form)).await),
        ("POST", "release") => encoded(machine.release(&release(form)).await),
        ("POST", "abort") => encoded(machine.abort(comment).await),
        ("POST", "commission") => encoded(machine.commission(&commission(form)).await),
        ("POST", "test") => {
            let test = Test { enable_ssh: form.yes("enable_ssh"), testing_scripts: form.names("testing_scripts") };
            encoded(machine.test(&test).await)
        }
        ("POST", "override_failed_testing") => encoded(machine.override_failed_testing(comment).await),
        ("POST", "lock") => encoded(machine.lock(comment).await),
        ("POST", "unlock") => encoded(machine.unlock(comment).await),
        ("POST", "mark_broken") => encoded(machine.mark_broken(comment).await),
        ("POST", "mark_fixed") => encoded(machine.mark_fixed(comment).await),
        ("POST", "rescue_mode") => encoded(machine.rescue_mode().await),
        ("POST", "exit_rescue_mode") => encoded(machine.exit_rescue_mode().await),
        ("POST", "power_on") => encoded(machine.power_on(comment).await),
        ("POST", "power_off") => {
            let how = match form.text("stop_mode").as_deref() {
                Some("soft") => PowerOff::Soft,
                _ => PowerOff::Hard,
            };
            encoded(machine.power_off(how, comment).await)
        }
        _ => return None,
    })
}

fn filter(query: &mut Fields) -> MachineFilter {
    let mut filter = MachineFilter::new();
    for (key, value) in query.rest() {
        let text = value.as_str();
        filter = match (key.as_str(), text.parse::<u32>()) {
            ("id", _) => filter.system_id(&text.into()),
            ("hostname", _) => filter.hostname(text),
            ("mac_address", _) => filter.mac_address(text),
            ("domain", _) => filter.domain(text),
            ("zone", _) => filter.zone(text),
            ("pool", _) => filter.pool(text),
            ("agent_name", _) => filter.agent_name(text),
            ("tags", _) => filter.tag(text),
            ("not_tags", _) => filter.not_tag(text),
            ("pod", _) => filter.pod(text),
            ("status", _) if text == "ready" => filter.status(MachineStatus::Ready),
            ("status", _) if text == "deployed" => filter.status(MachineStatus::Deployed),
            ("power_state", _) => filter.power_state(PowerState::from(text.to_owned())),
            ("cpu_count", Ok(count)) => filter.cpu_count(count),
            _ => {
                query.give_back((key, value));
                filter
            }
        };
    }
    filter
}

fn allocate(form: &mut Fields) -> Allocate {
    let mut allocate = Allocate::new();
    for (key, value) in form.rest() {
        let text = value.as_str();
        allocate = match (key.as_str(), text.parse::<u32>()) {
            ("dry_run", _) if text == "true" => allocate.dry_run(),
            ("verbose", _) if text == "true" => allocate.verbose(),
            ("cpu_count", Ok(count)) => allocate.cpu_count(count),
            ("mem", Ok(memory)) => allocate.memory(MebiBytes(memory.into())),
            ("tags", _) => allocate.tag(text),
            ("not_tags", _) => allocate.not_tag(text),
            ("zone", _) => allocate.zone(text),
            ("not_in_zone", _) => allocate.not_in_zone(text),
            ("pool", _) => allocate.pool(text),
            ("not_in_pool", _) => allocate.not_in_pool(text),
            ("pod", _) => allocate.pod(text),
            ("system_id", _) => allocate.system_id(&text.into()),
            ("name", _) => allocate.name(text),
            ("arch", _) => allocate.architecture(text),
            ("storage", _) => allocate.storage(text),
            ("interfaces", _) => allocate.interfaces(text),
            ("subnets", _) => allocate.subnet(text),
            ("devices", _) => allocate.devices(text),
            ("agent_name", _) => allocate.agent_name(text),
            ("comment", _) => allocate.comment(text),
            ("bridge_all", _) => allocate.bridge_all(text == "true"),
            ("bridge_type", _) if text == "ovs" => allocate.bridge_type(BridgeType::Ovs),
            ("bridge_stp", _) => allocate.bridge_stp(text == "true"),
            ("bridge_fd", Ok(seconds)) => allocate.bridge_fd(seconds),
            _ => {
                form.give_back((key, value));
                allocate
            }
        };
    }
    allocate
}

fn deploy(form: &mut Fields) -> Deploy {
    Deploy {
        distro_series: form.text("distro_series"),
        user_data: form.text("user_data").map(UserData::from_base64),
        hwe_kernel: form.text("hwe_kernel"),
        agent_name: form.text("agent_name"),
        comment: form.text("comment"),
        bridge_all: form.parsed("bridge_all"),
        install_kvm: form.parsed("install_kvm"),
        register_vmhost: form.parsed("register_vmhost"),
        ephemeral_deploy: form.parsed("ephemeral_deploy"),
        enable_hw_sync: form.parsed("enable_hw_sync"),
        ..Deploy::default()
    }
}

fn release(form: &mut Fields) -> Release {
    let mut release = Release {
        comment: form.text("comment"),
        erase: form.yes("erase"),
        secure_erase: form.yes("secure_erase"),
        quick_erase: form.yes("quick_erase"),
        force: form.yes("force"),
        scripts: form.names("scripts"),
        ..Release::default()
    };
    if !release.scripts.is_empty() {
        release.script_parameters = form.rest().into_iter().collect();
    }
    release
}

fn commission(form: &mut Fields) -> Commission {
    Commission {
        enable_ssh: form.yes("enable_ssh"),
        skip_bmc_config: form.yes("skip_bmc_config"),
        skip_networking: form.yes("skip_networking"),
        skip_storage: form.yes("skip_storage"),
        commissioning_scripts: form.names("commissioning_scripts"),
        testing_scripts: form.names("testing_scripts"),
    }
}

fn settings(form: &mut Fields) -> MachineSettings {
    MachineSettings {
        hostname: form.text("hostname"),
        description: form.text("description"),
        zone: form.text("zone"),
        pool: form.text("pool"),
        architecture: form.text("architecture"),
        power_type: form.text("power_type"),
        ..MachineSettings::default()
    }
}
