//! Uploading an image. The answers here follow MAAS's source, not recordings.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "a test may fail")]

mod support;

use std::io::Cursor;

use http::Method;
use maas_client::{Error, Upload, UploadError};

/// sha256 of nine million zero bytes.
const SHA256: &str = "177ffe9ef4bc54e6880afccabfbdb0273a15b89c0e663eabeeb8e9cda211f21f";
const SIZE: usize = 9_000_000;

fn resource(complete: bool) -> String {
    let place =
        if complete { String::new() } else { r#", "progress": 0, "upload_uri": "/MAAS/api/2.0/boot-resources/4/upload/9/""#.to_owned() };
    format!(
        r#"{{"id": 4, "type": "Uploaded", "name": "edge-node", "sets": {{"20261116": {{"version": "20261116", "complete": {complete},
        "files": {{"root.tgz": {{"filename": "root.tgz", "sha256": "{SHA256}", "size": {SIZE}, "complete": {complete}{place}}}}}}}}}}}"#
    )
}

fn upload() -> Upload {
    Upload { name: "custom/edge-node".to_owned(), architecture: "amd64/generic".to_owned(), ..Upload::default() }
}

#[tokio::test(start_paused = true)]
async fn an_image_goes_in_pieces_with_its_checksum_and_progress_is_told() {
    let (transport, sent) = support::wire(|number, _| async move {
        Ok(match number {
            0 => support::answer(201, "application/json", &resource(false)),
            1..=3 => support::text(200, "OK"),
            _ => support::json(&resource(true)),
        })
    });
    let client = support::builder().build_on(transport);
    let mut told = Vec::new();
    let image =
        client.boot_resources().upload(&upload(), &mut Cursor::new(vec![0; SIZE]), |done, all| told.push((done, all))).await.unwrap();
    assert!(image.sets["20261116"].complete);
    let all = SIZE as u64;
    assert_eq!(told, [(4 << 20, all), (8 << 20, all), (all, all)]);
    let requests = sent.all();
    let form: Vec<(String, String)> = form_urlencoded::parse(requests[0].body()).into_owned().collect();
    assert!(form.contains(&("sha256".to_owned(), SHA256.to_owned())) && form.contains(&("size".to_owned(), SIZE.to_string())), "{form:?}");
    for piece in &requests[1..4] {
        assert_eq!((piece.method(), piece.uri().path()), (&Method::PUT, "/MAAS/api/2.0/boot-resources/4/upload/9/"));
        assert_eq!(piece.headers()["content-type"], "application/octet-stream");
        assert_eq!(piece.headers()["content-length"], piece.body().len().to_string());
    }
    assert_eq!(requests[1..4].iter().map(|piece| piece.body().len()).sum::<usize>(), SIZE);
}

#[tokio::test(start_paused = true)]
async fn an_image_maas_has_already_is_not_sent() {
    let (transport, sent) = support::always(support::answer(201, "application/json", &resource(true)));
    support::builder().build_on(transport).boot_resources().upload(&upload(), &mut Cursor::new(vec![0; SIZE]), |_, _| {}).await.unwrap();
    assert_eq!(sent.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_piece_whose_answer_got_lost_is_not_sent_again() {
    let (transport, sent) = support::wire(|number, _| async move {
        if number == 0 { Ok(support::answer(201, "application/json", &resource(false))) } else { Err("connection reset".into()) }
    });
    let client = support::builder().build_on(transport);
    let error = client.boot_resources().upload(&upload(), &mut Cursor::new(vec![0; SIZE]), |_, _| {}).await.unwrap_err();
    assert!(matches!(error, UploadError::Call(Error::OutcomeUnknown { .. })), "{error:?}");
    assert_eq!(sent.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_names_no_place_is_told() {
    let (transport, _) = support::always(support::answer(201, "application/json", r#"{"id": 4}"#));
    let error = support::builder()
        .build_on(transport)
        .boot_resources()
        .upload(&upload(), &mut Cursor::new(b"x".to_vec()), |_, _| {})
        .await
        .unwrap_err();
    assert!(matches!(error, UploadError::NoPlace { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_not_whole_after_its_last_piece_is_no_success() {
    let smaller = resource(true).replace(&format!("\"size\": {SIZE}"), "\"size\": 7");
    for afterwards in [resource(false), smaller, r#"{"id": 4, "name": "edge-node"}"#.to_owned()] {
        let (transport, _) = support::wire(move |number, _| {
            let afterwards = afterwards.clone();
            async move {
                Ok(match number {
                    0 => support::answer(201, "application/json", &resource(false)),
                    1..=3 => support::text(200, "OK"),
                    _ => support::json(&afterwards),
                })
            }
        });
        let client = support::builder().build_on(transport);
        let error = client.boot_resources().upload(&upload(), &mut Cursor::new(vec![0; SIZE]), |_, _| {}).await.unwrap_err();
        assert!(matches!(error, UploadError::Incomplete { .. }), "{error:?}");
    }
}
