//! What the pages tell people to type: every command, option and variable is one that the genuine programs and our templates have.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Command,
};

use lab::programs::{Program, Programs, Search, find_or_build, find_or_build_helm};

use crate::management::{PROGRAM, expect, manifest, repository, text};

/// Variables that are not ours: of the shell, of kubectl, and of clusterctl.
const OF_OTHERS: [&str; 2] = ["PATH", "KUBECONFIG"];

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
clusters: [{name: racks, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: racks, user: {}}]
contexts: [{name: racks, context: {cluster: racks, user: racks}}]
current-context: racks
";

fn programs() -> Programs {
    find_or_build(&Search::from_environment(None), &[Program::Kubectl, Program::Clusterctl], &mut |_| {}).unwrap()
}

fn page(name: &str) -> String {
    fs::read_to_string(repository().join(name)).unwrap()
}

/// Pages with commands on them.
fn pages() -> Vec<String> {
    let how_to = fs::read_dir(repository().join("docs/how-to")).unwrap().map(|entry| entry.unwrap().file_name());
    let how_to = how_to.map(|name| format!("docs/how-to/{}", name.to_str().unwrap()));
    ["README.md", "docs/quick-start.md", "docs/lab.md", "docs/migration.md"].map(str::to_owned).into_iter().chain(how_to).collect()
}

/// The commands in the blocks of a page, as words.
fn commands(page: &str) -> Vec<Vec<String>> {
    page.split("```").skip(1).step_by(2).flat_map(|block| words(block.split_once('\n').map_or("", |(_, lines)| lines))).collect()
}

/// As a shell takes lines apart, as far as these pages need it. What is run inside `$(…)` is a command of its own.
fn words(lines: &str) -> Vec<Vec<String>> {
    let (mut commands, mut command, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut characters = lines.replace("\\\n", " ").replace("\n$ ", "\n").chars().collect::<Vec<_>>().into_iter().peekable();
    let (mut quote, mut is_comment) = (None, false);
    while let Some(character) = characters.next() {
        match (quote, character) {
            (_, '\n') if is_comment => is_comment = false,
            (_, _) if is_comment => continue,
            (Some(open), _) if open != character => word.push(character),
            (Some(_), _) => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '$') if characters.peek() == Some(&'(') => continue,
            (None, '#') if word.is_empty() => is_comment = true,
            (None, ' ' | '\n' | '|' | ';' | '&' | '(' | ')') => {}
            (None, _) => word.push(character),
        }
        let ends = quote.is_none() && !is_comment && matches!(character, ' ' | '\n' | '|' | ';' | '&' | '(' | ')');
        if (ends || is_comment) && !word.is_empty() {
            command.push(std::mem::take(&mut word));
        }
        if ends && character != ' ' || is_comment {
            commands.push(std::mem::take(&mut command));
        }
    }
    command.push(word);
    commands.push(command);
    commands.retain(|command: &Vec<String>| command.iter().any(|word| !word.is_empty()));
    commands
}

/// The name of a variable that a word sets.
fn set_by(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    (!name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')).then_some(name)
}

/// Variables that a page sets.
fn variables(page: &str) -> BTreeSet<String> {
    let commands = commands(page);
    let set = commands.iter().flat_map(|command| command.iter().filter(|word| *word != "export").map_while(|word| set_by(word)));
    set.map(str::to_owned).collect()
}

/// What is wrong with a command, if anything is.
fn wrong(command: &[String], programs: &Programs) -> Option<String> {
    let command: Vec<&str> = command.iter().map(String::as_str).skip_while(|word| set_by(word).is_some()).collect();
    let (own, inside) = command.split_at(command.iter().position(|word| *word == "--").unwrap_or(command.len()));
    let mut is_ours = own.first() == Some(&"metalshift");
    // The words that call it, and the one that makes it tell its options.
    let (mut called, mut help) = (1, "--help");
    let program = match own.first().copied()? {
        "helm" => find_or_build_helm(&Search::from_environment(None), &mut |_| {}).unwrap(),
        "cargo" => {
            // Its own commands open a manual when they are asked at length; `xtask` is a program of ours.
            (called, help) = if own.get(1) == Some(&"xtask") { (2, "--help") } else { (1, "-h") };
            is_ours = own.get(1) == Some(&"run");
            std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into()
        }
        "kubectl" => programs.path(Program::Kubectl).to_owned(),
        "clusterctl" => programs.path(Program::Clusterctl).to_owned(),
        "metalshift" => PathBuf::from(PROGRAM),
        "make" => {
            let is_known = page("Makefile").contains(&format!("\n{}:", own.get(1)?));
            return (!is_known).then(|| format!("{command:?}: the Makefile has no such target"));
        }
        _ => return None,
    };
    // What comes before its own options, where those of all commands may stand.
    let name = own[..called].join(" ");
    let mut rest = &own[called..];
    while let [option, _, others @ ..] = rest
        && ["--kubeconfig", "--namespace"].contains(option)
    {
        rest = others;
    }
    let plain: Vec<&str> = rest.iter().copied().take_while(|word| !word.starts_with('-')).collect();
    let verbs = plain.iter().take(if own[0] == "kubectl" { 1 } else { 2 });
    let helped = said(Command::new(&program).args(&own[1..called]).args(verbs).arg(help).current_dir(repository()));
    let everywhere = if own[0] == "kubectl" { said(Command::new(&program).arg("options")) } else { String::new() };
    let verb = plain.first().copied().unwrap_or_default();
    if !helped.contains(&format!("{name} {verb}")) {
        return Some(format!("{command:?}: {name} does not know {verb}: {helped}"));
    }
    let known = |option: &str| [&helped, &everywhere].iter().any(|help| help.split([' ', ',', '=', '\n', '[']).any(|word| word == option));
    for option in own.iter().filter(|word| word.starts_with('-')).map(|word| word.split('=').next().unwrap()) {
        let options: Vec<String> = match option.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => letters.chars().map(|letter| format!("-{letter}")).collect(),
            _ => vec![option.to_owned()],
        };
        if let Some(unknown) = options.iter().find(|option| !known(option)) {
            return Some(format!("{command:?}: {name} {verb} has no {unknown}"));
        }
    }
    // `cargo run` runs our program with what is inside, and `lab exec` any other.
    let inside = inside.iter().skip(1).map(|word| (*word).to_owned());
    let runs = (own[0] == "cargo").then(|| "metalshift".to_owned());
    if is_ours { wrong(&runs.into_iter().chain(inside).collect::<Vec<_>>(), programs) } else { None }
}

/// What a program says of itself; what it wants to know of the world is nowhere.
fn said(command: &mut Command) -> String {
    command.envs([("CLUSTERCTL_DISABLE_VERSIONCHECK", "true"), ("GOPROXY", "off")]).env("KUBECONFIG", "/nonexistent");
    text(&command.output().unwrap())
}

/// Variables of our documentation with what counts where they are not given: those of the table that this word is in, or of all tables.
fn documented(table: &str) -> BTreeMap<String, String> {
    let page = page("docs/reference/template-variables.md");
    let tables = page.split("\n\n").filter(|part| part.starts_with("| variable |") && part.contains(table));
    let rows = tables.flat_map(|table| table.lines().skip(2)).map(|row| row.trim_matches('|').split(" | ").collect::<Vec<_>>());
    rows.flat_map(|cells| {
        let names: Vec<String> = cells[0].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        names.into_iter().map(move |name| (name, cells[2].trim().to_owned()))
    })
    .collect()
}

#[test]
fn every_command_on_the_pages_is_one_that_its_program_has() {
    let programs = programs();
    let all: Vec<_> = pages().iter().flat_map(|name| commands(&page(name))).collect();
    let complaints: Vec<String> = all.iter().filter_map(|command| wrong(command, &programs)).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    for (program, least) in [("kubectl", 4), ("clusterctl", 4), ("metalshift", 4), ("make", 4), ("cargo", 4), ("helm", 2)] {
        let count = all.iter().filter(|command| command.iter().any(|word| word == program)).count();
        assert!(count >= least, "the pages have only {count} commands of {program}: are they still read as they are written?");
    }
}

#[test]
fn planted_commands_that_do_not_exist_are_found() {
    let programs = programs();
    let lines = "kubectl gett nodes\nexport A=$(metalshift lab kubeconfig --paths)\nclusterctl generate cluster a --flavour b | kubectl apply -y -f -
metalshift lab exec -- kubectl get nodes --outputs wide # --watch\nmake undo
cargo run --released -- demo\ncargo run --release -- demo --keeps\ncargo xtask relase DIR\nhelm install a chart --name-space b\nkubectl --kubeconfig a get nodes -A --output 'wide --x'";
    let complaints: Vec<String> = words(lines).iter().filter_map(|command| wrong(command, &programs)).collect();
    let found = ["does not know gett", "has no --paths", "has no --flavour", "has no -y", "has no --outputs", "no such target"];
    let more = ["has no --released", "has no --keeps", "does not know relase", "has no --name-space"];
    let found: Vec<&str> = found.into_iter().chain(more).collect();
    assert_eq!(complaints.len(), found.len(), "{complaints:#?}");
    for (complaint, words) in complaints.iter().zip(found) {
        assert!(complaint.contains(words), "{words}: {complaint}");
    }
}

#[test]
fn variables_of_every_template_are_those_that_are_documented_with_what_counts_without_them() {
    let documented = documented("`MAAS_DNS_DOMAIN`");
    let given_to_clusterctl = ["CLUSTER_NAME", "KUBERNETES_VERSION"];
    // A kubeconfig is there, and nothing answers at its address.
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    fs::write(kubeconfig.path(), KUBECONFIG).unwrap();
    for template in ["cluster-template.yaml", "cluster-template-ephemeral.yaml", "cluster-template-clusterclass.yaml"] {
        let mut clusterctl = Command::new(programs().path(Program::Clusterctl));
        clusterctl.args(["generate", "cluster", "racks", "--kubernetes-version=v1.35.8", "--list-variables"]);
        clusterctl.envs([("CLUSTERCTL_DISABLE_VERSIONCHECK", "true"), ("GOPROXY", "off")]).env("KUBECONFIG", kubeconfig.path());
        let listed = expect(clusterctl.arg("--from").arg(manifest(template)));
        let listed: BTreeMap<&str, Option<&str>> = listed
            .lines()
            .filter_map(|line| line.strip_prefix("  - "))
            .map(|line| line.split_once(' ').map_or((line.trim(), None), |(name, rest)| (name, rest.trim().strip_prefix("(defaults to "))))
            .collect();
        assert_eq!(listed.keys().copied().collect::<BTreeSet<_>>(), documented.keys().map(String::as_str).collect(), "{template}");
        for (name, default) in listed {
            let default = default.map(|default| default.trim_end_matches(')').trim_matches('"').trim());
            let told = &documented[name];
            let is_told = match default {
                _ if given_to_clusterctl.contains(&name) => told == "must be given",
                None => told == "must be given",
                Some("") => told == "none",
                Some("current Namespace in the KubeConfig file") => told == "that of the current context of the kubeconfig",
                Some(default) => told.split(['`', ';', ',', ' ']).any(|word| word == default),
            };
            assert!(is_told, "{template}: {name} is {default:?}, and the page says {told:?}");
        }
    }
}

#[test]
fn the_quick_start_gives_every_variable_that_must_be_given_and_no_page_sets_one_that_nobody_reads() {
    let known = documented("");
    for name in pages() {
        let unknown: Vec<String> = variables(&page(&name))
            .into_iter()
            .filter(|variable| !known.contains_key(variable) && !OF_OTHERS.contains(&variable.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
    let given = variables(&page("docs/quick-start.md"));
    // These are arguments of clusterctl there, and the lab's own file has the MAAS.
    let elsewhere = ["CLUSTER_NAME", "KUBERNETES_VERSION", "MAAS_API_KEY"];
    let needed = known.iter().filter(|(name, told)| told.starts_with("must be given") && !elsewhere.contains(&name.as_str()));
    let missing: Vec<&String> = needed.map(|(name, _)| name).filter(|name| !given.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
