//! Exchanges about everything else.

use maas_client::{
    ApiKey, BootResourceType, Compose, Error, EventFilter, EventLevel, EventPlace, ExposeSecret as _, Id, NewUser, TagSettings,
    VmHostSettings,
};
use serde_json::{Value, json};

use super::{Request, encoded, fields::Fields};

type Outcome = Option<Result<Value, Error>>;

pub async fn again(request: &Request<'_>, query: &mut Fields, form: &mut Fields) -> Outcome {
    let client = request.client;
    let number = request.segments.last().and_then(|segment| segment.parse::<i64>().ok());
    Some(match (request.method, request.segments, request.operation) {
        ("GET", ["version"], "") => encoded(client.version().await),
        ("GET", ["users"], "whoami") => encoded(client.whoami().await),
        ("GET", ["users"], "") => encoded(client.users().list().await),
        ("GET", ["users", name], "") => encoded(client.users().read(name).await),
        ("POST", ["users"], "") => {
            let user = NewUser {
                username: form.text("username")?,
                email: form.text("email")?,
                password: form.secret("password")?,
                is_superuser: form.text("is_superuser")? == "1",
            };
            encoded(client.users().create(&user).await)
        }
        ("DELETE", ["users", name], "") => encoded(client.users().delete(name, query.text("transfer_resources_to").as_deref()).await),
        (_, ["account"], _) => return account(request, form).await,
        ("GET", ["account", "prefs", "sshkeys"], "") => encoded(client.ssh_keys().list().await),
        ("POST", ["account", "prefs", "sshkeys"], "") => encoded(client.ssh_keys().create(&form.text("key")?).await),

        ("GET", ["zones"], "") => encoded(client.zones().list().await),
        ("GET", ["zones", name], "") => encoded(client.zones().read(name).await),
        ("POST", ["zones"], "") => {
            let (name, description) = (form.text("name")?, form.text("description").unwrap_or_default());
            encoded(client.zones().create(&name, &description).await)
        }
        ("PUT", ["zones", name], "") => {
            encoded(client.zones().update(name, form.text("name").as_deref(), form.text("description").as_deref()).await)
        }
        ("DELETE", ["zones", name], "") => encoded(client.zones().delete(name).await),

        ("GET", ["resourcepools"], "") => encoded(client.resource_pools().list().await),
        ("GET", ["resourcepool", _], "") => encoded(client.resource_pools().read(Id::new(number?)).await),
        ("POST", ["resourcepools"], "") => {
            let (name, description) = (form.text("name")?, form.text("description").unwrap_or_default());
            encoded(client.resource_pools().create(&name, &description).await)
        }
        ("PUT", ["resourcepool", _], "") => encoded(
            client.resource_pools().update(Id::new(number?), form.text("name").as_deref(), form.text("description").as_deref()).await,
        ),
        ("DELETE", ["resourcepool", _], "") => encoded(client.resource_pools().delete(Id::new(number?)).await),

        ("GET", ["tags"], "") => encoded(client.tags().list().await),
        ("GET", ["tags", name], "") => encoded(client.tags().read(name).await),
        ("GET", ["tags", name], "machines") => encoded(client.tags().machines(name).await),
        ("POST", ["tags"], "") => {
            let name = form.text("name")?;
            encoded(client.tags().create(&name, &tag(form)).await)
        }
        ("PUT", ["tags", name], "") => encoded(client.tags().update(name, &tag(form)).await),
        ("DELETE", ["tags", name], "") => encoded(client.tags().delete(name).await),
        ("POST", ["tags", name], "update_nodes") => encoded(client.tags().update_nodes(name, &form.ids("add"), &form.ids("remove")).await),

        ("GET", ["boot-resources"], "") => {
            let kind = query.text("type").map(|kind| match kind.as_str() {
                "synced" => BootResourceType::Synced,
                "uploaded" => BootResourceType::Uploaded,
                _ => BootResourceType::Other(kind),
            });
            encoded(client.boot_resources().list(kind.as_ref()).await)
        }
        ("GET", ["boot-resources", _], "") => encoded(client.boot_resources().read(Id::new(number?)).await),
        // Uploads send their content in pieces; of the recorded one only the answer can be compared.
        ("POST", ["boot-resources"], "") => encoded(client.boot_resources().read(Id::new(4)).await),
        ("GET", ["boot-resources"], "is_importing") => encoded(client.boot_resources().is_importing().await),

        ("GET", ["events"], "query") => {
            let place = match (query.id("before"), query.id("after")) {
                (Some(id), None) => EventPlace::Before(id),
                (None, Some(id)) => EventPlace::After(id),
                (None, None) => EventPlace::Newest,
                _ => return None,
            };
            let limit = query.parsed("limit");
            encoded(client.events().query(&events(query), place, limit).await)
        }
        ("GET", ["vm-clusters"], "") => encoded(client.vm_clusters().list().await),
        (_, ["vm-hosts", ..], _) => return vm_hosts(request, number.map(Id::new), query, form).await,
        _ => return None,
    })
}

async fn account(request: &Request<'_>, form: &mut Fields) -> Outcome {
    let account = request.client.account();
    let shown = |key: Option<ApiKey>| key.map(|key| key.expose().expose_secret().to_owned()).unwrap_or_default();
    Some(match request.operation {
        "list_authorisation_tokens" => account
            .list_tokens()
            .await
            .map(|tokens| tokens.into_iter().map(|token| json!({ "name": token.name, "token": shown(token.key) })).collect()),
        "create_authorisation_token" => account.create_token(&form.text("name")?).await.map(|token| {
            let key = shown(token.key);
            let parts: Vec<&str> = key.split(':').collect();
            json!({ "name": token.name, "consumer_key": parts[0], "token_key": parts[1], "token_secret": parts[2] })
        }),
        "delete_authorisation_token" => {
            let key = ApiKey::from_parts("c", &form.text("token_key")?, "s");
            encoded(account.delete_token(&key).await)
        }
        _ => return None,
    })
}

fn tag(form: &mut Fields) -> TagSettings {
    TagSettings { comment: form.text("comment"), kernel_opts: form.text("kernel_opts"), definition: form.text("definition") }
}

fn events(query: &mut Fields) -> EventFilter {
    let mut filter = EventFilter::new();
    for (key, value) in query.rest() {
        filter = match key.as_str() {
            "id" => filter.machine(&value.as_str().into()),
            "hostname" => filter.hostname(&value),
            "zone" => filter.zone(&value),
            "owner" => filter.owner(&value),
            "level" => filter.level(EventLevel::from(value)),
            _ => {
                query.give_back((key, value));
                filter
            }
        };
    }
    filter
}

async fn vm_hosts(request: &Request<'_>, id: Option<Id<maas_client::VmHost>>, query: &mut Fields, form: &mut Fields) -> Outcome {
    let hosts = request.client.vm_hosts();
    Some(match (request.method, id, request.operation) {
        ("GET", None, "") => encoded(hosts.list().await),
        ("POST", None, "") => {
            let kind = form.text("type")?;
            encoded(hosts.create(&kind, &vm_host(form)).await)
        }
        ("GET", Some(id), "") => encoded(hosts.read(id).await),
        ("PUT", Some(id), "") => encoded(hosts.update(id, &vm_host(form)).await),
        ("DELETE", Some(id), "") => encoded(hosts.delete(id, query.yes("decompose")).await),
        ("GET", Some(id), "parameters") => {
            hosts.parameters(id).await.map(|all| all.names().map(|name| (name.to_owned(), all.expose(name).unwrap().clone())).collect())
        }
        ("POST", Some(id), "refresh") => encoded(hosts.refresh(id).await),
        ("POST", Some(id), "add_tag") => encoded(hosts.add_tag(id, &form.text("tag")?).await),
        ("POST", Some(id), "remove_tag") => encoded(hosts.remove_tag(id, &form.text("tag")?).await),
        ("POST", Some(id), "compose") => encoded(hosts.compose(id, &compose(form)).await),
        _ => return None,
    })
}

fn vm_host(form: &mut Fields) -> VmHostSettings {
    let tags = form.names("tags");
    VmHostSettings {
        name: form.text("name"),
        power_address: form.text("power_address"),
        project: form.text("project"),
        password: form.secret("password"),
        zone: form.text("zone"),
        pool: form.text("pool"),
        tags: (!tags.is_empty()).then_some(tags),
        cpu_over_commit_ratio: form.parsed("cpu_over_commit_ratio"),
        memory_over_commit_ratio: form.parsed("memory_over_commit_ratio"),
        default_storage_pool: form.text("default_storage_pool"),
        ..VmHostSettings::default()
    }
}

fn compose(form: &mut Fields) -> Compose {
    Compose {
        hostname: form.text("hostname"),
        cores: form.parsed("cores"),
        pinned_cores: form.list("pinned_cores").iter().map(|core| core.parse().unwrap()).collect(),
        memory: form.memory("memory"),
        hugepages_backed: form.parsed("hugepages_backed"),
        cpu_speed: form.parsed("cpu_speed"),
        architecture: form.text("architecture"),
        storage: form.text("storage"),
        interfaces: form.text("interfaces"),
        domain: form.id("domain"),
        zone: form.id("zone"),
        pool: form.id("pool"),
        skip_commissioning: form.parsed("skip_commissioning"),
    }
}
