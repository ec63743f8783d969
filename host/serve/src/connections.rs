//! Accepts connections, and closes those that clients leave open: otherwise they take up the open files of the process,
//! and nobody else is answered.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// The time from one request, or from the beginning of the connection, until the head of the next one is complete.
const HEAD: Duration = Duration::from_secs(30);
/// The pause after a connection was not accepted, because all files that the process may open are open.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests until it is dropped.
pub async fn serve(listener: TcpListener, router: Router) -> Infallible {
    serve_within(listener, router, HEAD).await
}

async fn serve_within(listener: TcpListener, router: Router, head: Duration) -> Infallible {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!("a connection was not accepted: {error}");
                sleep(PAUSE).await;
                continue;
            }
        };
        // A streamed token is a small packet, which would otherwise wait for the acknowledgement of the one before. It
        // is only slower where this fails.
        let _ = stream.set_nodelay(true);
        let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        tokio::spawn(async move {
            // The client is gone, or sent what is not a request.
            let _ = connection.await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn a_connection_that_asks_nothing_is_closed_and_others_are_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = async || {
            sleep(Duration::from_secs(2)).await;
            "late"
        };
        let router = Router::new().route("/", get(|| async { "hello" })).route("/late", get(answer));
        tokio::spawn(async move { serve_within(listener, router, Duration::from_secs(1)).await });
        let read = async |sent: &str| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            let mut text = String::new();
            let read = stream.read_to_string(&mut text);
            tokio::time::timeout(Duration::from_secs(20), read).await.expect("it is closed").unwrap();
            text
        };
        let (silent, half, idle, late) = tokio::join!(
            read(""),
            read("GET / HTTP/1.1\r\nhost: a\r\n"),
            read("GET / HTTP/1.1\r\nhost: a\r\n\r\n"),
            read("GET /late HTTP/1.1\r\nhost: a\r\n\r\n"),
        );
        assert!(!silent.contains("200") && !half.contains("200"), "{silent} {half}");
        // A connection is kept for the next request, but not for ever. An answer may take longer.
        assert!(idle.ends_with("\r\n\r\nhello") && late.ends_with("\r\n\r\nlate"), "{idle} {late}");
    }
}
