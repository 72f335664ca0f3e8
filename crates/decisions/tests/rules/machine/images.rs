//! Whether MAAS has the image that a machine is to run.

use decisions::machine::{Facts, ImageCheck, decide};

use super::facts::{now, reason, wanted};

#[test]
fn s14_an_image_maas_does_not_have_is_told_before_anything_is_allocated() {
    let facts = Facts { image: ImageCheck::Absent { available: vec!["ubuntu/noble".to_owned()] }, ..wanted() };
    let plan = decide(&facts, now());
    assert_eq!((plan.step.clone(), reason(&plan).as_str()), (None, "ImageNotFound"));
    let status = plan.status.unwrap();
    let message = &api::condition::find(&status.conditions, "MachineDeployed").unwrap().message;
    assert!(message.contains("ubuntu/jammy") && message.contains("ubuntu/noble"), "{}", message);
}

#[test]
fn s14_an_image_is_there_only_if_maas_lists_that_very_one() {
    let listed = ["ubuntu/jammy", "rhel/9", "suse/15", "edge-node"];
    let check = |image: &str| {
        let spec = api::MaasMachineSpec { image: image.to_owned(), ..api::MaasMachineSpec::default() };
        ImageCheck::of(&spec.image(), listed.into_iter())
    };
    for image in ["ubuntu/jammy", "rhel/9", "suse/15", "edge-node", "custom/edge-node"] {
        assert_eq!(check(image), ImageCheck::Present, "{image}");
    }
    for image in ["jammy", "centos/jammy", "custom/jammy", "ubuntu/edge-node", "9", ""] {
        assert!(matches!(check(image), ImageCheck::Absent { available } if available.len() == 4), "{image}");
    }
    assert_eq!(ImageCheck::of(&wanted().object.spec.image(), std::iter::empty()), ImageCheck::Absent { available: Vec::new() });
}
