//! A call that is polled by whoever waits for it, and by a task of its own once nobody does.
//!
//! Most clients wait for their answers. A task per call would cost each of them two more wake-ups and, on busy cores, a
//! change of thread; so a call becomes a task only when its client goes away or has waited too long.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::CatchUnwind;
use tokio::runtime::Handle;

/// The future panicked.
#[derive(Debug)]
pub(super) struct Panicked;

/// A future that is never dropped before it is ready: what is left of it goes on as a task.
pub(super) struct GoesOn<F: Future + Send + 'static>(
    Option<Pin<Box<CatchUnwind<AssertUnwindSafe<F>>>>>,
);

impl<F: Future + Send + 'static> GoesOn<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Some(Box::pin(AssertUnwindSafe(future).catch_unwind())))
    }
}

impl<F: Future + Send + 'static> Future for GoesOn<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Ready(Err(Panicked)) };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled.map_err(|_| Panicked)
    }
}

impl<F: Future + Send + 'static> Drop for GoesOn<F> {
    fn drop(&mut self) {
        // Without a runtime the whole platform is being ended.
        if let (Some(rest), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move {
                // Nobody waits for what it came to, or for why it panicked.
                let _ = rest.await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_any_more_is_carried_to_its_end() {
        let (go, gone) = oneshot::channel::<()>();
        let (done, ended) = oneshot::channel();
        let call = GoesOn::new(async move {
            gone.await.unwrap();
            done.send(5).unwrap();
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), call).await.is_err());
        go.send(()).unwrap();
        assert_eq!(ended.await, Ok(5));
    }

    #[tokio::test]
    async fn a_call_that_is_waited_for_returns_and_one_that_panics_says_so() {
        assert_eq!(GoesOn::new(async { 3 }).await.unwrap(), 3);
        assert!(GoesOn::new(async { panic!("as it should") }).await.is_err());
    }
}
