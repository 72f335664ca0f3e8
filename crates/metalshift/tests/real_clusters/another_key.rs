//! The provider's own key of MAAS is replaced while it runs. It has the rights it ships with, and nobody starts it again. Machines are on
//! paper, so nobody needs root.

use maas_client::{Client as Maas, ExposeSecret as _, MachineFilter};
use serde_json::json;

use crate::{
    management::ADMINISTRATOR,
    stage::{Cluster, Stage},
};

#[tokio::test]
async fn a_provider_whose_key_is_revoked_goes_on_with_the_one_that_was_put_into_its_secret() {
    let stage = Stage::on_paper("real_clusters/one-server.yaml").await;
    stage.create_cluster(&Cluster::default()).await;
    stage.until_the_first_is_deployed().await;

    let old = stage.maas().await;
    let another = old.account().create_token("another").await.unwrap().key.unwrap().expose();
    let another = another.expose_secret();
    let maas = Maas::builder(&stage.maas_address().await, another).unwrap().build().unwrap();
    maas.account().delete_token(&ADMINISTRATOR.parse().unwrap()).await.unwrap();
    assert!(matches!(old.whoami().await, Err(maas_client::Error::Unauthenticated { .. })), "the old one is worth nothing");
    let key = json!({"stringData": {"MAAS_API_KEY": another}}).to_string();
    let secret = "secret/capmaas-manager-bootstrap-credentials";
    stage.kubectl(&["patch", secret, "--namespace=capmaas-system", "--type=merge", "--patch", &key]).await;

    // It takes the key to give the server back.
    stage.kubectl(&["delete", "cluster", "racks", "--timeout=2m"]).await;
    let machines = maas.machines().list(&MachineFilter::new()).await.unwrap();
    assert!(machines.iter().all(|machine| machine.owner.is_none()), "{machines:?}");
    stage.assert_the_provider_minded_its_own();
}
