//! Files that were uploaded and not recorded. Their digests are: other bytes are sent, so wherever the recorded digest stands, in
//! requests and expectations, it becomes theirs.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    recordings::Recording,
    request::{FILE, file},
};

/// MAAS names a stored file by this many digits of its digest.
const STORED_NAME: usize = 7;

/// Replaces the digests of files whose content is not recorded.
pub fn replace_digests(recordings: &mut [Recording]) {
    let mut digests = BTreeMap::new();
    for request in recordings.iter().flat_map(|recording| &recording.exchanges).map(|exchange| &exchange.request) {
        let field = |name: &str| request.form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if let (Some(FILE), Some(digest), Some(size)) =
            (field("content"), field("sha256"), field("size").and_then(|size| size.parse().ok()))
        {
            let other = digest_of(&file(size));
            digests.insert(digest[..STORED_NAME.min(digest.len())].to_owned(), other[..STORED_NAME].to_owned());
            digests.insert(digest.to_owned(), other);
        }
    }
    for exchange in recordings.iter_mut().flat_map(|recording| &mut recording.exchanges) {
        for (_, value) in &mut exchange.request.form {
            if let Some(other) = digests.get(value) {
                value.clone_from(other);
            }
        }
        replace(&mut exchange.response.body, &digests);
    }
}

fn digest_of(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn replace(value: &mut Value, digests: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(other) = digests.get(text) {
                text.clone_from(other);
            }
        }
        Value::Array(rows) => rows.iter_mut().for_each(|row| replace(row, digests)),
        Value::Object(object) => object.values_mut().for_each(|value| replace(value, digests)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::recordings::{Exchange, Request, Response};

    #[test]
    fn digests_of_files_that_were_not_recorded_become_those_of_what_is_sent() {
        let digest = "0123456789abcdef".repeat(4);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let form = vec![pair("content", FILE), pair("sha256", &digest), pair("size", "3")];
        let body = serde_json::json!({"sha256": digest, "filename_on_disk": "0123456", "size": 3});
        let response: Response = serde_json::from_value(serde_json::json!({"status": 201, "body": body})).unwrap();
        let exchange = Exchange { request: Request { form, ..Request::default() }, response };
        let mut recordings = [Recording { number: 1, name: "x".into(), race: false, exchanges: vec![exchange] }];
        replace_digests(&mut recordings);
        let Exchange { request, response } = &recordings[0].exchanges[0];
        assert_eq!(request.form[1].1, digest_of(&file(3)));
        assert_eq!(response.body["sha256"], digest_of(&file(3)));
        assert_eq!(response.body["filename_on_disk"], digest_of(&file(3))[..7]);
    }
}
