//! A record that was there before and that somebody asked for: what others put there stays, whatever happens.

use std::{net::IpAddr, time::Duration};

use super::*;
use decisions::cluster::Learned;
use proptest::{prelude::*, sample::Index};

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// What becomes of a list that MAAS is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    /// The process ends before it is sent.
    KilledBefore,
    /// It is carried out, and the process ends.
    KilledAfter,
    /// MAAS refuses it.
    Refused,
}

/// Something that happens between two passes.
#[derive(Debug, Clone)]
enum Happens {
    /// The machines of the control plane have these addresses from now on.
    Machines(BTreeSet<u8>),
    /// A person adds an address to the record, or takes out one that a person added.
    PersonAdds(u8),
    PersonTakes(Index),
}

/// A MAAS with one record, and what people have in it.
struct Maas {
    facts: Facts,
    record: BTreeSet<IpAddr>,
    theirs: BTreeSet<IpAddr>,
    now: Timestamp,
}

impl Maas {
    fn new(theirs: &BTreeSet<u8>) -> Self {
        let theirs: BTreeSet<IpAddr> = theirs.iter().copied().map(ip).collect();
        let asked = object(json!({"spec": {"controlPlaneEndpoint": {"host": "api.maas", "port": 6443}}}));
        Self { facts: Facts { object: asked, ..facts() }, record: theirs.clone(), theirs, now: now() }
    }

    fn happens(&mut self, what: &Happens) {
        match what {
            Happens::Machines(addresses) => {
                let machine =
                    |last: &u8| member(&last.to_string(), json!({"status": {"addresses": [{"type": "ExternalIP", "address": ip(*last)}]}}));
                self.facts.machines = addresses.iter().map(machine).collect();
            }
            Happens::PersonAdds(last) => {
                self.record.insert(ip(*last));
                self.theirs.insert(ip(*last));
            }
            Happens::PersonTakes(index) => {
                let all: Vec<IpAddr> = self.theirs.iter().copied().collect();
                if !all.is_empty() {
                    self.theirs.remove(index.get(&all));
                    self.record.remove(index.get(&all));
                }
            }
        }
    }

    fn read(&self) -> Lookup<Vec<Record>> {
        let addresses = self.record.iter().map(|ip| RecordAddress { ip: *ip, is_our_reservation: false }).collect();
        Lookup::Found(vec![Record { id: 1, time_to_live: None, addresses }])
    }

    /// One pass of a process that has just started, late enough for nothing to be outstanding. Says whether the object was let go.
    fn pass(&mut self, fate: Fate) -> bool {
        self.now += Duration::from_secs(121);
        let (records, failed) = (self.read(), None);
        self.facts = Facts { records, failed, order: OrderState::Found, reservations: None, shown: None, ..self.facts.clone() };
        self.facts.machines_are_confirmed = false;
        for _ in 0..40 {
            let Some(step) = decide(&self.facts, self.now).step else { return false };
            let learned = match &step {
                Step::Intend(intent) | Step::Settle(intent) => {
                    let mut facts = self.facts.clone();
                    merge_object(&mut facts, json!({"metadata": {"annotations": {names::ENDPOINT: intent.to_annotation()}}}));
                    let object = Box::new(facts.object);
                    if matches!(step, Step::Intend(_)) { Learned::Order(object) } else { Learned::Object(object) }
                }
                Step::ListMachines => Learned::Machines(self.facts.machines.clone()),
                Step::ListRecords => Learned::Records(self.read()),
                Step::ListReservations => Learned::Reservations(now(), Vec::new()),
                Step::WriteRecord { time_to_live, addresses, .. } => {
                    assert_eq!(*time_to_live, None, "how long name servers keep it is not ours to say");
                    match fate {
                        Fate::KilledBefore => return false,
                        Fate::Refused => {
                            let failure = Failure { kind: FailureKind::Refused, words: "no".to_owned() };
                            self.facts.fail(&step, failure);
                            continue;
                        }
                        Fate::Answered | Fate::KilledAfter => self.record = addresses.iter().copied().collect(),
                    }
                    assert!(self.record.is_superset(&self.theirs), "{:?} of {:?} is left", self.record, self.theirs);
                    if fate == Fate::KilledAfter {
                        return false;
                    }
                    Learned::Record(self.read().found().unwrap()[0].clone())
                }
                Step::RemoveFinalizer => return true,
                other => panic!("{other:?} of a record that is not ours"),
            };
            self.facts.learn(learned);
        }
        panic!("a pass without an end");
    }
}

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![3 => Just(Fate::Answered), 1 => Just(Fate::KilledBefore), 1 => Just(Fate::KilledAfter), 1 => Just(Fate::Refused)]
}

fn events() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => proptest::collection::btree_set(1..6_u8, 0..4).prop_map(Happens::Machines),
        1 => (100..104_u8).prop_map(Happens::PersonAdds),
        1 => any::<Index>().prop_map(Happens::PersonTakes),
    ]
}

proptest! {
    #[test]
    fn what_others_have_in_a_record_stays_and_only_ours_leaves_whenever_the_process_ends(
        // Some of them happen to be those of our own machines.
        theirs in proptest::collection::btree_set(prop_oneof![1..6_u8, 90..95_u8], 0..4),
        life in proptest::collection::vec((events(), fates()), 1..8),
        end in proptest::collection::vec(fates(), 0..3),
    ) {
        let mut maas = Maas::new(&theirs);
        for (event, fate) in &life {
            maas.happens(event);
            prop_assert!(!maas.pass(*fate));
        }
        maas.facts = going(maas.facts);
        maas.facts.machines.clear();
        let gone = end.iter().chain([&Fate::Answered; 2]).any(|fate| maas.pass(*fate));
        prop_assert!(gone, "{:?}", maas.facts.object.metadata.annotations);
        prop_assert_eq!(&maas.record, &maas.theirs);
    }
}

#[test]
fn a_cluster_without_machines_leaves_a_record_that_was_there_as_it_is() {
    let mut maas = Maas::new(&[7, 8].into());
    assert!(!maas.pass(Fate::Answered));
    assert_eq!(maas.record, [ip(7), ip(8)].into());
    assert_eq!(shown(&decide(&maas.facts, maas.now), "LoadBalancerReady"), "True/LoadBalancerReady");
}

#[test]
fn a_machine_does_not_wait_for_an_address_that_somebody_else_put_there() {
    let given = json!({"given": true, "added": ["10.0.0.2"]});
    let records = Lookup::Found(vec![record(1, &[("10.0.0.1", false), ("10.0.0.2", false), ("10.0.0.3", false)])]);
    let machine = |name: &str, address: &str| {
        let mut member = member(name, json!({"status": {"addresses": [{"type": "ExternalIP", "address": address}]}}));
        member.object.metadata.deletion_timestamp = (name != "c").then(|| k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
        member
    };
    let machines = vec![machine("a", "10.0.0.1"), machine("b", "10.0.0.2"), machine("c", "10.0.0.3")];
    let facts = Facts { records, machines, reservations: Some(Vec::new()), ..named(given) };
    let plan = decide(&facts, now());
    assert_eq!(plan.status.unwrap().network.unwrap().addresses, ["10.0.0.2", "10.0.0.3"]);
    let Some(Step::Intend(intent)) = plan.step else { panic!("{:?}", plan.step) };
    assert_eq!(intent.order.unwrap().what, api::EndpointOrderKind::Write(["10.0.0.1", "10.0.0.3"].map(|ip| ip.parse().unwrap()).into()));
}

#[test]
fn a_record_that_was_there_and_is_made_anew_is_ours() {
    let facts = named(json!({"given": true, "added": ["10.0.0.1"]}));
    let Some(Step::Intend(intent)) = decide(&facts, now()).step else { panic!("not made anew") };
    assert_eq!((intent.given, intent.added), (false, vec![]));
}

#[test]
fn a_list_for_a_record_that_others_write_too_rests_on_a_look_at_the_last_moment() {
    let records = |addresses: &[(&str, bool)]| Lookup::Found(vec![record(1, addresses)]);
    let machines = vec![member("a", json!({}))];
    let mut facts =
        Facts { records: records(&[("10.0.0.9", false)]), machines, reservations: Some(Vec::new()), ..named(json!({"given": true})) };
    let Some(Step::Intend(intent)) = decide(&facts, now()).step else { panic!("not intended") };
    assert_eq!(intent.added, [ip(1)], "on record before it is sent");
    merge_object(&mut facts, json!({"metadata": {"annotations": {names::ENDPOINT: intent.to_annotation()}}}));
    facts.learn(Learned::Order(Box::new(facts.object.clone())));
    assert_eq!(decide(&facts, now()).step, Some(Step::ListRecords));
    facts.learn(Learned::Records(records(&[("10.0.0.8", false), ("10.0.0.9", false)])));
    let Some(Step::Intend(intent)) = decide(&facts, now()).step else { panic!("what came in between is overlooked") };
    assert_eq!(intent.order.unwrap().what, api::EndpointOrderKind::Write(vec![ip(1), ip(8), ip(9)]));
    facts.learn(Learned::Records(records(&[("10.0.0.9", false)])));
    assert!(matches!(decide(&facts, now()).step, Some(Step::WriteRecord { .. })));
}
