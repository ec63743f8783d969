//! A stream whose client must read what is written to it.

use super::connection::Connection;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that fails once the client has read nothing for some time while something is to be written.
pub(super) struct TimedWrites<S> {
    stream: S,
    time: Duration,
    connection: Arc<Connection>,
    /// Until when the client must read.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> TimedWrites<S> {
    pub(super) fn new(stream: S, time: Duration, connection: Arc<Connection>) -> Self {
        Self { stream, time, connection, until: None }
    }

    fn write(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match write(Pin::new(&mut self.stream), context) {
            Poll::Ready(written) => {
                if self.until.take().is_some() {
                    self.connection.set_stuck(false);
                }
                Poll::Ready(written)
            }
            Poll::Pending => {
                let until = self.until.get_or_insert_with(|| {
                    self.connection.set_stuck(true);
                    Box::pin(sleep(self.time))
                });
                ready!(until.as_mut().poll(context));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWrites<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test]
    async fn a_client_that_does_not_read_is_given_up() {
        let (server, client) = duplex(16);
        let connection = Arc::new(Connection::new());
        let answering = connection.answer();
        let mut server = TimedWrites::new(server, Duration::ZERO, connection.clone());
        server.write_all(&[1; 16]).await.unwrap();
        assert!(connection.waits_since().is_none());
        let error = server.write_all(&[1]).await.unwrap_err();
        assert!(error.kind() == io::ErrorKind::TimedOut && connection.waits_since().is_some());
        drop((answering, client));
    }

    #[tokio::test]
    async fn a_client_that_reads_gets_everything() {
        let (server, mut client) = duplex(16);
        let connection = Arc::new(Connection::new());
        let answering = connection.answer();
        let mut server = TimedWrites::new(server, Duration::MAX, connection.clone());
        let mut read = Vec::new();
        let write = async {
            server.write_all(&[1; 1000]).await.unwrap();
            drop(server);
        };
        let (_, count) = tokio::join!(write, client.read_to_end(&mut read));
        assert!(count.unwrap() == 1000 && connection.waits_since().is_none());
        drop(answering);
    }
}
