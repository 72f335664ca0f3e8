//! The rules of a remediation's spec, whether it stands alone or in a template.

use crate::{
    rules::{Case, try_all},
    server::Server,
};
use serde_json::{Value, json};

pub fn cases() -> Vec<Case> {
    let spec = |strategy: Value| json!({"strategy": strategy});
    vec![Case {
        kind: "MaasRemediation",
        path: "spec.strategy.timeout",
        message: "the node needs time to come back: write how long it may take to boot, for example 10m",
        before: None,
        refused: spec(json!({"timeout": "0m"})),
        taken: spec(json!({"timeout": "12m30s"})),
    }]
}

#[tokio::test]
async fn every_rule_of_a_remediation_refuses_with_words_and_takes_what_is_right() {
    try_all(&Server::with_namespace("remediation-rules").await, cases()).await;
}

#[tokio::test]
async fn a_strategy_that_does_not_exist_and_attempts_that_are_none_are_refused() {
    let server = Server::with_namespace("remediation-values").await;
    for (strategy, words) in [
        (json!({"type": "Reinstall"}), "supported values: \"PowerCycle\""),
        (json!({"retryLimit": 0}), "should be greater than or equal to 1"),
        (json!({"timeout": "soon"}), "spec.strategy.timeout"),
    ] {
        let said = server.create("MaasRemediation", "one", &json!({"strategy": strategy}), true).await.unwrap_err();
        assert!(said.contains(words), "{strategy}: {said}");
    }
    for strategy in [json!({}), json!({"type": "PowerCycle", "retryLimit": 3, "timeout": "15m"})] {
        server.create("MaasRemediation", "one", &json!({"strategy": strategy}), true).await.unwrap();
    }
    server.create("MaasRemediationTemplate", "one", &json!({"template": {"spec": {}}}), true).await.unwrap();
}
