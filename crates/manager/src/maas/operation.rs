//! The name of a call for counting: method, path with every id replaced, operation. There are as many as MAAS has operations, however many
//! machines it has.

use http::Request;

/// What stands below an item and is no item itself.
const BELOW: [&str; 11] = [
    "interfaces",
    "vlans",
    "blockdevices",
    "partitions",
    "partition",
    "prefs",
    "sshkeys",
    "upload",
    "raids",
    "volume-groups",
    "bcache-cache-sets",
];

/// Such as `POST machines/{}/?op=deploy`.
pub(super) fn operation<B>(request: &Request<B>) -> String {
    let path = request.uri().path();
    let path = path.split_once("/api/2.0/").map_or(path, |(_, path)| path);
    let mut name = format!("{} ", request.method());
    let mut replaced = false;
    for (index, part) in path.split('/').filter(|part| !part.is_empty()).enumerate() {
        if index == 0 || BELOW.contains(&part) {
            name.push_str(part);
            name.push('/');
            replaced = false;
        } else if !replaced {
            // Names with slashes of their own, such as subnets, are one item.
            name.push_str("{}/");
            replaced = true;
        }
    }
    let operation = request.uri().query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("op=")));
    if let Some(operation) = operation {
        name.push_str("?op=");
        name.push_str(operation);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_replaced_and_operations_kept() {
        for (method, target, expected) in [
            ("POST", "machines/?op=allocate", "POST machines/?op=allocate"),
            ("POST", "machines/abc123/?op=deploy", "POST machines/{}/?op=deploy"),
            ("GET", "nodes/abc123/interfaces/17/", "GET nodes/{}/interfaces/{}/"),
            ("GET", "events/?op=query&level=DEBUG&after=12", "GET events/?op=query"),
            ("GET", "subnets/cidr:10.0.0.0/24/?op=reserved", "GET subnets/{}/?op=reserved"),
            ("PUT", "account/prefs/sshkeys/3/", "PUT account/prefs/sshkeys/{}/"),
        ] {
            let request = Request::builder().method(method).uri(format!("http://maas:5240/MAAS/api/2.0/{target}")).body(()).unwrap();
            assert_eq!(operation(&request), expected);
        }
    }
}
