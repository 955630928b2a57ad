//! A timer that ends with its owner. The runtime's own delayed sends are not cancelled by a stop.

use std::time::Duration;

use ractor::ActorRef;
use tokio::task::AbortHandle;

/// At most one delayed message at a time; setting it again or dropping it cancels the last.
#[derive(Debug, Default)]
pub struct Timer(Option<AbortHandle>);

impl Timer {
    /// Sends `message` to `actor` after the time has passed.
    pub fn set<M: ractor::Message>(&mut self, after: Duration, actor: &ActorRef<M>, message: M) {
        self.clear();
        let actor = actor.clone();
        let task = tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // An actor that has ended needs no reminder.
            let _ = actor.cast(message);
        });
        self.0 = Some(task.abort_handle());
    }

    /// Cancels it.
    pub fn clear(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.clear();
    }
}
