//! What can be done to one machine.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Commission, Deploy, Machine, MachineSettings, PowerState, Release, Test};
use crate::{
    Client, Error, SecretParameters, SystemId,
    call::{Call, Form, Path},
    named::Named,
};

/// Calls on one machine; see [`Client::machine`].
///
/// Whatever changes it is sent once, also what MAAS does not mind twice: between two attempts the machine may have become somebody else's.
/// After [`Error::OutcomeUnknown`] look, then do it again. Answers of writes show the machine before MAAS's work after the transaction:
/// read it again for its addresses and its power.
#[derive(Clone, Copy, Debug)]
pub struct OneMachine<'a> {
    client: &'a Client,
    id: &'a SystemId,
}

/// How to switch a machine off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerOff {
    /// Asks its system to shut down.
    Soft,
    /// Takes its power.
    Hard,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct QueriedPower {
    state: Option<PowerState>,
}

impl Named for QueriedPower {
    const KIND: &'static str = "state of power";

    fn is_named(&self) -> bool {
        self.state.is_some()
    }
}

impl<'a> OneMachine<'a> {
    pub(super) fn new(client: &'a Client, id: &'a SystemId) -> Self {
        Self { client, id }
    }

    fn path(self) -> Path {
        Path::new("machines").item(self.id)
    }

    fn about(self, call: Call) -> Call {
        call.about("machine", self.id)
    }

    async fn act(self, operation: &'static str, form: Form) -> Result<Machine, Error> {
        self.client.object(self.about(Call::post(self.path()).operation(operation).form(form))).await
    }

    async fn act_with_comment(self, operation: &'static str, comment: Option<&str>) -> Result<Machine, Error> {
        self.act(operation, Form::new().maybe("comment", comment)).await
    }

    /// The machine as it is.
    pub async fn read(self) -> Result<Machine, Error> {
        self.client.object(self.about(Call::get(self.path()))).await
    }

    /// Changes it. For administrators.
    pub async fn update(self, settings: &MachineSettings) -> Result<Machine, Error> {
        self.client.object(self.about(Call::put(self.path()).form(settings.form()).once())).await
    }

    /// Removes it from MAAS; a VM that MAAS composed is destroyed. With `force` also the VM host it is. For administrators.
    pub async fn delete(self, force: bool) -> Result<(), Error> {
        let query = if force { Form::new().with("force", true) } else { Form::new() };
        self.client.done(self.about(Call::delete(self.path()).query(query).once())).await
    }

    /// Deploys it. A machine that is neither Ready nor Allocated is a final conflict. That subnets have no address left is
    /// [`Error::Unavailable`] with MAAS's own words (`answered`), and then the machine is Allocated.
    pub async fn deploy(self, deploy: &Deploy) -> Result<Machine, Error> {
        self.act("deploy", deploy.form()).await
    }

    /// Releases it. After [`Error::Failed`], a power controller's error, release it again.
    pub async fn release(self, release: &Release) -> Result<Machine, Error> {
        self.act("release", release.form()).await
    }

    /// Stops what it is being made to do: deploying, commissioning, testing, erasing. The answer still shows the old status.
    pub async fn abort(self, comment: Option<&str>) -> Result<Machine, Error> {
        self.act_with_comment("abort", comment).await
    }

    /// Commissions it. For administrators.
    pub async fn commission(self, commission: &Commission) -> Result<Machine, Error> {
        self.act("commission", commission.form()).await
    }

    /// Tests it. For administrators.
    pub async fn test(self, test: &Test) -> Result<Machine, Error> {
        self.act("test", test.form()).await
    }

    /// Takes failed tests for passed. For administrators.
    pub async fn override_failed_testing(self, comment: Option<&str>) -> Result<Machine, Error> {
        self.act_with_comment("override_failed_testing", comment).await
    }

    /// Locks it, deploying or deployed: nothing but unlocking is permitted then.
    pub async fn lock(self, comment: Option<&str>) -> Result<Machine, Error> {
        self.act_with_comment("lock", comment).await
    }

    /// Unlocks it.
    pub async fn unlock(self, comment: Option<&str>) -> Result<Machine, Error> {
        self.act_with_comment("unlock", comment).await
    }

    /// Marks it broken and gives it up. For its owner, not even for administrators.
    pub async fn mark_broken(self, comment: Option<&str>) -> Result<Machine, Error> {
        self.act_with_comment("mark_broken", comment).await
    }

    /// Marks it repaired. For administrators.
    pub async fn mark_fixed(self, comment: Option<&str>) -> Result<Machine, Error> {
        self.act_with_comment("mark_fixed", comment).await
    }

    /// Boots it into a rescue system. For administrators.
    pub async fn rescue_mode(self) -> Result<Machine, Error> {
        self.act("rescue_mode", Form::new()).await
    }

    /// Boots it into its own system again. For administrators.
    pub async fn exit_rescue_mode(self) -> Result<Machine, Error> {
        self.act("exit_rescue_mode", Form::new()).await
    }

    /// Gives it power. One that is Allocated begins to deploy; one that runs in memory begins anew.
    pub async fn power_on(self, comment: Option<&str>) -> Result<Machine, Error> {
        let call = Call::post(self.path()).operation("power_on").form(Form::new().maybe("comment", comment));
        self.client.object(self.about(call.slow())).await
    }

    /// Takes its power. The answer is empty for a machine whose power a person switches.
    pub async fn power_off(self, how: PowerOff, comment: Option<&str>) -> Result<Option<Machine>, Error> {
        let how = match how {
            PowerOff::Soft => "soft",
            PowerOff::Hard => "hard",
        };
        let form = Form::new().with("stop_mode", how).maybe("comment", comment);
        self.client.object_or_null(self.about(Call::post(self.path()).operation("power_off").form(form).slow())).await
    }

    /// Asks its power controller now, which may take a minute.
    pub async fn query_power_state(self) -> Result<PowerState, Error> {
        let queried: QueriedPower = self.client.object(self.about(Call::get(self.path()).operation("query_power_state").slow())).await?;
        Ok(queried.state.unwrap_or_default())
    }

    /// How its power controller is reached, passwords included. For administrators.
    pub async fn power_parameters(self) -> Result<SecretParameters, Error> {
        self.client.json(self.about(Call::get(self.path()).operation("power_parameters"))).await
    }

    /// Notes something on it; an empty value removes the note. For its owner. Keys have letters, digits, dots, dashes and underscores:
    /// others are not sent, since MAAS would fail at them.
    pub async fn set_workload_annotations(self, annotations: &BTreeMap<String, String>) -> Result<Machine, Error> {
        let good = |key: &str| !key.is_empty() && key.chars().all(|character| character.is_alphanumeric() || "._-".contains(character));
        let form = annotations.iter().fold(Form::new(), |form, (key, value)| form.with(key.clone(), value));
        let call = self.about(Call::post(self.path()).operation("set_workload_annotations").form(form));
        if !annotations.keys().all(|key| good(key)) {
            let reason = "a key of an annotation has other characters than letters, digits, dots, dashes and underscores";
            return Err(Error::Invalid { call: Box::new(call.name), reason });
        }
        self.client.object(call).await
    }
}
