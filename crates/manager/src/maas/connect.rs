//! How a client comes to its wire: over the network in production, onto an emulated MAAS in a simulation.

use maas_client::{Client, ClientBuilder, ExposeSecret, SetupError, Transport, network_transport};
use std::sync::Arc;

use super::credentials::Credentials;

/// Begins a client and names the wire it is to use. Budget, breaker and metrics are put around the wire by [`super::MaasAccounts`], so
/// that nobody can forget them; clock and randomness are the maker's business.
pub type Connect = Arc<dyn Fn(&Credentials) -> Result<(ClientBuilder, Transport), SetupError> + Send + Sync>;

/// Clients over the network.
pub fn over_the_network() -> Connect {
    Arc::new(|credentials| {
        let builder = Client::builder(credentials.endpoint.as_str(), credentials.key.expose_secret())?;
        let transport = network_transport(credentials.certificate_authority.as_deref())?;
        Ok((builder, transport))
    })
}
