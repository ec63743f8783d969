use super::*;
use crate::budget::first_slice::History;
use std::future::poll_fn;
use std::task::Waker;

fn limits(cpu_ms: u64, deadline_ms: u64) -> Limits {
    let (cpu, deadline) = (Duration::from_millis(cpu_ms), Duration::from_millis(deadline_ms));
    Limits { cpu, deadline, ..Limits::default() }
}

fn burn(time: Duration) {
    let start = thread_time();
    while thread_time() - start < time {}
}

async fn run<F: Future>(call: &mut TimedCall<F>, slice: Option<Slice<'_>>) -> TimedPoll<F::Output> {
    poll_fn(|context| call.poll(context, slice)).await
}

/// A guest that loops: it burns a millisecond and is interrupted.
fn looping(pauses: &Arc<Pauses>) -> impl Future<Output = ()> {
    let pauses = pauses.clone();
    async move {
        loop {
            burn(Duration::from_millis(1));
            pauses.interrupt();
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_loop_uses_up_its_processor_time() {
    let pauses = Arc::default();
    let mut call = TimedCall::new(looping(&pauses), limits(20, 60_000), pauses.clone(), Arc::new(Semaphore::new(1)));
    assert!(matches!(run(&mut call, None).await, TimedPoll::OverBudget(Budget::Cpu)));
    assert!(call.used().cpu >= Duration::from_millis(20));
}

#[tokio::test]
async fn a_wait_is_charged_to_the_deadline_and_not_to_the_processor() {
    let wait = tokio::time::sleep(Duration::from_secs(60));
    let gate = Arc::new(Semaphore::new(1));
    let mut call = TimedCall::new(wait, limits(1000, 50), Arc::default(), gate.clone());
    assert!(matches!(run(&mut call, None).await, TimedPoll::OverBudget(Budget::Deadline)));
    assert!(call.used().cpu < Duration::from_millis(50));
    drop(call);
    assert_eq!(gate.available_permits(), 1);
}

#[tokio::test]
async fn the_queue_is_not_charged() {
    let gate = Arc::new(Semaphore::new(1));
    let held = gate.clone().acquire_owned().await.unwrap();
    let mut call = TimedCall::new(async { 7 }, limits(1000, 1000), Arc::default(), gate);
    let release = async {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        drop(held);
    };
    let (step, ()) = tokio::join!(run(&mut call, None), release);
    assert!(matches!(step, TimedPoll::Done(7)));
    assert!(call.used().elapsed() < Duration::from_millis(1000));
}

#[tokio::test]
async fn a_call_past_its_deadline_ends_without_a_permit() {
    let gate = Arc::new(Semaphore::new(1));
    let wait = tokio::time::sleep(Duration::from_secs(60));
    let mut call = TimedCall::new(wait, limits(1000, 50), Arc::default(), gate.clone());
    let mut context = Context::from_waker(Waker::noop());
    assert!(call.poll(&mut context, None).is_pending());
    let _held = gate.try_acquire_owned().unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(matches!(call.poll(&mut context, None), Poll::Ready(TimedPoll::OverBudget(Budget::Deadline))));
}

#[tokio::test]
async fn what_is_charged_during_a_poll_counts_in_it() {
    let time = Duration::from_millis(60);
    for (deadline, done) in [(60_000, true), (50, false)] {
        let pauses: Arc<Pauses> = Arc::default();
        let charged = pauses.clone();
        let call = async move { charged.charge(time) };
        let mut call = TimedCall::new(call, limits(1000, deadline), pauses.clone(), Arc::new(Semaphore::new(1)));
        match run(&mut call, None).await {
            TimedPoll::Done(()) => assert!(done),
            TimedPoll::OverBudget(which) => assert_eq!((which, done), (Budget::Deadline, false)),
            TimedPoll::Outlived => panic!("it has no slice"),
        }
        assert_eq!(call.used().waits, time);
        assert_eq!(pauses.left(), Duration::from_millis(deadline));
    }
}

#[tokio::test]
async fn what_the_host_works_for_a_call_that_waits_is_its_processor_time() {
    let pauses: Arc<Pauses> = Arc::default();
    let wait = tokio::time::sleep(Duration::from_secs(60));
    let mut call = TimedCall::new(wait, limits(50, 60_000), pauses.clone(), Arc::new(Semaphore::new(1)));
    let working = pauses.clone();
    let worker = std::thread::spawn(move || {
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(5));
            working.work(Duration::from_millis(10));
        }
    });
    assert!(matches!(run(&mut call, None).await, TimedPoll::OverBudget(Budget::Cpu)));
    worker.join().unwrap();
    assert!(call.used().cpu >= Duration::from_millis(50));
    assert!(call.used().elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn an_interrupted_call_goes_on_at_once_within_its_slice() {
    let pauses: Arc<Pauses> = Arc::default();
    let interrupted = pauses.clone();
    let call = async move {
        for _ in 0..3 {
            interrupted.interrupt();
            tokio::task::yield_now().await;
        }
    };
    let history = History::default();
    let mut call = TimedCall::new(call, limits(60_000, 60_000), pauses, Arc::new(Semaphore::new(1)));
    let slice = Slice { time: Duration::from_secs(30), history: &history };
    let polled = call.poll(&mut Context::from_waker(Waker::noop()), Some(slice));
    assert!(matches!(polled, Poll::Ready(TimedPoll::Done(()))));
}

#[tokio::test]
async fn a_call_that_outlives_its_slice_goes_on_elsewhere() {
    let pauses = Arc::default();
    let (fast, slow) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
    let mut call = TimedCall::new(looping(&pauses), limits(1000, 60_000), pauses.clone(), fast.clone());
    let history = History::default();
    let slice = Some(Slice { time: Duration::from_millis(3), history: &history });
    assert!(matches!(run(&mut call, slice).await, TimedPoll::Outlived));
    assert!(call.used().cpu >= Duration::from_millis(3));
    call.change_lane(slow.clone());
    assert_eq!((fast.available_permits(), slow.available_permits()), (1, 1));
    assert!(matches!(run(&mut call, None).await, TimedPoll::OverBudget(Budget::Cpu)));
}

#[tokio::test]
async fn a_plugin_whose_last_four_calls_outlived_their_slices_always_does() {
    let history = History::default();
    let slice = Some(Slice { time: Duration::from_millis(1), history: &history });
    let gate = Arc::new(Semaphore::new(1));
    for number in 0..4 {
        assert!(!history.always_outlives(), "after {number} calls");
        let pauses = Arc::default();
        let permit = gate.clone().acquire_owned().await.unwrap();
        let call = TimedCall::new(looping(&pauses), limits(1000, 60_000), pauses.clone(), gate.clone());
        assert!(matches!(run(&mut call.with(permit), slice).await, TimedPoll::Outlived));
    }
    assert!(history.always_outlives());
    assert_eq!(gate.available_permits(), 1);
}
