//! Runs the ledger in a separate thread, and sends calls to it in batches.

use crate::error::Result;
use crate::ledger::{Call, Ledger, Message, Settled};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::thread::JoinHandle;

/// The number of calls in a message to the ledger. `BATCHES` is the maximum number of queued
/// messages.
const BATCH: usize = 1 << 13;
const BATCHES: usize = 16;

/// A ledger in a separate thread. Calls are collected and sent in batches.
pub(super) struct LedgerThread {
    messages: SyncSender<Message>,
    batch: Vec<Call>,
    has_failed: bool,
    thread: JoinHandle<Result<Settled>>,
}

impl LedgerThread {
    pub fn start(mut ledger: Ledger) -> Self {
        let (messages, inbox) = sync_channel(BATCHES);
        let thread = std::thread::spawn(move || {
            for message in inbox {
                ledger.take(message);
                if ledger.has_failed() {
                    break;
                }
            }
            ledger.finish()
        });
        LedgerThread { messages, batch: Vec::with_capacity(BATCH), has_failed: false, thread }
    }

    #[inline]
    pub fn call(&mut self, call: Call) {
        self.batch.push(call);
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    /// Sends a message. The ledger receives it after all earlier calls.
    pub fn send(&mut self, message: Message) {
        self.flush();
        self.has_failed |= self.messages.send(message).is_err();
    }

    /// Returns whether the ledger has stopped because its tables could not be written.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Sends the remaining calls, and waits until the ledger has written its tables.
    pub fn finish(mut self) -> Result<Settled> {
        self.flush();
        drop(self.messages);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn flush(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.has_failed |= self.messages.send(Message::Calls(batch)).is_err();
    }
}
