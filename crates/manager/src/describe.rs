//! One line for an error and all its causes, for log lines and probes.
//!
//! Kube's API error prints the whole status in debug form; a person wants the server's sentence.

use std::error::Error;

/// The error and its causes, joined by colons; a cause that its parent already quotes is not repeated.
pub fn describe(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
            return join(without_status(&line), &format!("{} ({} {})", status.message, status.code, status.reason));
        }
        let text = error.to_string();
        if !line.contains(&text) {
            line = join(&line, &text);
        }
        next = error.source();
    }
    line
}

/// The same for what came of reading a Secret. What could not be understood may be quoted in its error.
pub fn describe_of_secret(error: &kube::Error) -> String {
    match error {
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => "the answer could not be understood".to_owned(),
        other => describe(other),
    }
}

fn join(line: &str, text: &str) -> String {
    if line.is_empty() { text.to_owned() } else { format!("{line}: {text}") }
}

/// Errors that wrap kube's API error quote its debug form; cut it off before the real sentence is added.
fn without_status(line: &str) -> &str {
    line.find("ApiError: ").map_or(line, |start| line[..start].trim_end_matches([' ', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_error_is_told_in_the_words_of_the_server() {
        let status = kube::core::Status::failure("widgets \"a\" not found", "NotFound").with_code(404);
        let error = kube::runtime::watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()));
        assert_eq!(describe(&error), "failed to perform initial object list: widgets \"a\" not found (404 NotFound)");
    }

    #[test]
    fn a_secret_that_cannot_be_understood_is_not_quoted() {
        let text = r#"{"data": {"value": "hunter2""#;
        let error = serde_json::from_str::<u8>(text).unwrap_err();
        assert_eq!(describe_of_secret(&kube::Error::SerdeError(error)), "the answer could not be understood");
        let status = kube::core::Status::failure("secrets \"a\" not found", "NotFound").with_code(404);
        assert_eq!(describe_of_secret(&kube::Error::Api(status.boxed())), "secrets \"a\" not found (404 NotFound)");
    }

    #[test]
    fn causes_are_told_once() {
        let inner = std::io::Error::other("connection refused");
        let error = kube::Error::ReadEvents(inner);
        assert_eq!(describe(&error), "Error reading events stream: connection refused");
    }
}
