//! The parameters of a recorded request, taken one by one, so that it is known what was left over.

use std::{net::IpAddr, str::FromStr};

use maas_client::{Id, MebiBytes, SecretString, SystemId, TimeToLive};

use crate::recordings::Pairs;

pub struct Fields {
    pairs: Pairs,
    /// A value could not be said with the client's types.
    unsayable: bool,
}

impl Fields {
    pub fn new(pairs: &Pairs) -> Self {
        Self { pairs: pairs.clone(), unsayable: false }
    }

    pub fn all_said(&self) -> bool {
        self.pairs.is_empty() && !self.unsayable
    }

    pub fn rest(&mut self) -> Pairs {
        std::mem::take(&mut self.pairs)
    }

    pub fn give_back(&mut self, pair: (String, String)) {
        self.pairs.push(pair);
    }

    pub fn list(&mut self, key: &str) -> Vec<String> {
        let (taken, rest) = self.rest().into_iter().partition(|(name, _)| name == key);
        self.pairs = rest;
        let taken: Pairs = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    pub fn text(&mut self, key: &str) -> Option<String> {
        self.list(key).pop()
    }

    pub fn parsed<T: FromStr>(&mut self, key: &str) -> Option<T> {
        let text = self.text(key)?;
        let value = text.parse().ok();
        self.unsayable |= value.is_none();
        value
    }

    pub fn id<K>(&mut self, key: &str) -> Option<Id<K>> {
        self.parsed::<i64>(key).map(Id::new)
    }

    pub fn ids(&mut self, key: &str) -> Vec<SystemId> {
        self.list(key).into_iter().map(SystemId::from).collect()
    }

    pub fn memory(&mut self, key: &str) -> Option<MebiBytes> {
        self.parsed(key).map(MebiBytes)
    }

    pub fn ttl(&mut self, key: &str) -> Option<TimeToLive> {
        self.parsed(key).map(TimeToLive)
    }

    pub fn secret(&mut self, key: &str) -> Option<SecretString> {
        self.text(key).map(SecretString::from)
    }

    /// A flag that is sent only to say yes.
    pub fn yes(&mut self, key: &str) -> bool {
        match self.text(key).as_deref() {
            None => false,
            Some("true" | "1") => true,
            Some(_) => {
                self.unsayable = true;
                false
            }
        }
    }

    /// Addresses separated by spaces.
    pub fn addresses(&mut self, key: &str) -> Vec<IpAddr> {
        let parsed: Option<Vec<IpAddr>> = self.text(key).unwrap_or_default().split_whitespace().map(|part| part.parse().ok()).collect();
        self.unsayable |= parsed.is_none();
        parsed.unwrap_or_default()
    }

    /// Names separated by commas.
    pub fn names(&mut self, key: &str) -> Vec<String> {
        self.text(key).into_iter().flat_map(|text| text.split(',').map(str::to_owned).collect::<Vec<_>>()).collect()
    }
}
