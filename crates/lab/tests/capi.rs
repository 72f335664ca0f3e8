//! Level capi.
use lab::{Lab, Level, Options};

#[tokio::test]
async fn capi_up() {
    let start = std::time::Instant::now();
    let lab = Lab::up(Options::new(Level::Capi)).await.unwrap();
    eprintln!("{:?}", start.elapsed());
    eprintln!("{:#?}", lab.control().status().await.unwrap());
    lab.down().await;
    eprintln!("{:?}", start.elapsed());
}
