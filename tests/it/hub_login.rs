//! Who is who at a real Hub with a real provider.

use crate::support::{OpenId, World};

#[tokio::test(flavor = "multi_thread")]
async fn hub_login_a_hub_is_ready_and_the_provider_gives_tokens() {
    let world = World::new("hub-login").await;
    let openid = OpenId::get().await;
    let hub = world.start_hub_process(openid).await;
    assert_eq!(hub.get("/hub/healthz", "").await.status, 200);
    assert_eq!(openid.client_token().await.split('.').count(), 3);
    world.end().await;
}
