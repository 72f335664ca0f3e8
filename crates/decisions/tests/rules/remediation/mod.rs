//! Tables of the rules about `MaasRemediation`s. What they come to in the whole is tested in the manager, on an emulated MAAS.

mod facts;
mod gates;
mod life;
mod told;
