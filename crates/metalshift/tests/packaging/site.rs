//! A management cluster whose API server keeps a record, with the image of the provider on its node as if it had been pulled.

use std::{fs::File, ops::Deref, path::Path};

use crate::management::{Management, expect};

pub struct Site(Management);

impl Site {
    pub async fn up(image: &Path) -> Self {
        let management = Management::up("packaging/fleet.yaml", |options| options).await;
        let mut import = management.lab.control().enter(Some("management")).await.unwrap();
        expect(import.args(["ctr", "--namespace", "k8s.io", "images", "import", "-"]).stdin(File::open(image).unwrap()));
        Self(management)
    }
}

impl Deref for Site {
    type Target = Management;

    fn deref(&self) -> &Management {
        &self.0
    }
}
