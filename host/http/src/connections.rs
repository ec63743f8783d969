//! Accepts connections, and closes those that clients leave open or do not read from: otherwise they take up the open
//! files of the process, and nobody else is answered.

mod clients;
mod connection;
mod open_files;
mod timed_writes;

use axum::Router;
use axum::body::Body;
pub use clients::Client;
use clients::{Clients, Place};
use connection::Answer;
use hyper::Request;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use timed_writes::TimedWrites;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// The time from one request, or from the beginning of the connection, until the head of the next one is complete.
const HEAD: Duration = Duration::from_secs(30);
/// The time in which a client must read a part of what is written to it.
const READ: Duration = Duration::from_secs(30);
/// The most connections of a client, where the process may open enough files.
const CONNECTIONS: usize = 4096;
/// The pause after a connection was not accepted, because all files that the process may open are open.
const PAUSE: Duration = Duration::from_millis(100);

/// What clients may do with connections.
struct Limits {
    head: Duration,
    read: Duration,
    /// The most connections of a client.
    connections: usize,
}

/// Answers requests until it is dropped.
pub async fn serve(listener: TcpListener, router: Router) -> Infallible {
    // Others have the rest.
    let of_client = open_files::allow_open_files().map_or(CONNECTIONS, |files| CONNECTIONS.min(files / 4 * 3));
    serve_within(listener, router, Limits { head: HEAD, read: READ, connections: of_client.max(1) }).await
}

async fn serve_within(listener: TcpListener, router: Router, limits: Limits) -> Infallible {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    let clients = Arc::new(Clients::new(limits.connections));
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!("a connection was not accepted: {error}");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Some(place) = clients.admit(client.ip()) else {
            tracing::debug!(
                "{} has {} requests under way, and another connection was closed",
                client,
                limits.connections
            );
            continue;
        };
        // A streamed token is a small packet, which would otherwise wait for the acknowledgement of the one before. It
        // is only slower where this fails.
        let _ = stream.set_nodelay(true);
        tokio::spawn(answer(stream, place, http.clone(), router.clone(), limits.read));
    }
}

/// Answers the requests of a connection until it ends.
async fn answer(stream: TcpStream, place: Place, http: http1::Builder, router: Router, read: Duration) {
    let Place { connection, client, .. } = &place;
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<_>| {
        request.extensions_mut().insert(*client);
        let _answering = connection.answer();
        let answer = router.call(request);
        async move { Ok::<_, Infallible>(answer.await?.map(|body: Body| Answer { body, _answering })) }
    });
    let stream = TimedWrites::new(stream, read, connection.clone());
    tokio::select! {
        // The client is gone, does not read, or sent what is not a request.
        _ = http.serve_connection(TokioIo::new(stream), service) => {}
        () = connection.closed() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Extension;
    use axum::routing::get;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpSocket, TcpStream};

    #[tokio::test]
    async fn a_connection_that_asks_nothing_is_closed_and_others_are_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = async || {
            sleep(Duration::from_secs(2)).await;
            "late"
        };
        let router = Router::new().route("/", get(|| async { "hello" })).route("/late", get(answer));
        let limits = Limits { head: Duration::from_secs(1), read: READ, connections: CONNECTIONS };
        tokio::spawn(serve_within(listener, router, limits));
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

    const HELLO: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

    #[tokio::test]
    async fn a_client_with_all_of_its_connections_idle_is_still_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { "hello" }));
        tokio::spawn(serve_within(listener, router, Limits { head: HEAD, read: READ, connections: 2 }));
        let mut idle = Vec::new();
        for _ in 0..3 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let mut asking = TcpStream::connect(address).await.unwrap();
        asking.write_all(HELLO).await.unwrap();
        let mut text = String::new();
        asking.read_to_string(&mut text).await.unwrap();
        assert!(text.ends_with("\r\n\r\nhello"), "{text}");
        for closed in &mut idle[..2] {
            assert_eq!(closed.read(&mut [0]).await.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn a_request_has_its_client() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let is_here = |Extension(client): Extension<Client>| async move {
            (client == Client::at(Ipv4Addr::LOCALHOST.into())).to_string()
        };
        let router = Router::new().route("/", get(is_here));
        tokio::spawn(serve_within(listener, router, Limits { head: HEAD, read: READ, connections: 1 }));
        let mut asking = TcpStream::connect(address).await.unwrap();
        asking.write_all(HELLO).await.unwrap();
        let mut text = String::new();
        asking.read_to_string(&mut text).await.unwrap();
        assert!(text.ends_with("\r\n\r\ntrue"), "{text}");
    }

    #[tokio::test]
    async fn a_client_that_reads_no_answer_leaves_the_server_to_others() {
        const MOST: usize = 4;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endless = || async { Body::from_stream(futures::stream::repeat(Ok::<_, Infallible>(vec![0; 1 << 16]))) };
        let router = Router::new().route("/", get(endless)).route("/health", get(|| async { "healthy" }));
        // Longer than the test may take: no unread answer is given up.
        let limits = Limits { head: HEAD, read: Duration::from_secs(3600), connections: MOST };
        tokio::spawn(serve_within(listener, router, limits));
        let mut unread = Vec::new();
        for _ in 0..MOST {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(HELLO).await.unwrap();
            // The answer has begun.
            stream.read_exact(&mut [0; 12]).await.unwrap();
            unread.push(stream);
        }
        // It has no more connections, and they stay open.
        let mut further = TcpStream::connect(address).await.unwrap();
        assert!(matches!(further.read(&mut [0]).await, Ok(0) | Err(_)));
        let other = TcpSocket::new_v4().unwrap();
        other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut other = other.connect(address).await.unwrap();
        other.write_all(b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut text = String::new();
        other.read_to_string(&mut text).await.unwrap();
        assert!(text.ends_with("\r\n\r\nhealthy"), "{text}");
        for mut stream in unread {
            stream.read_exact(&mut vec![0; 1 << 16]).await.unwrap();
        }
    }

    /// Sends when it is dropped.
    struct Dropped(Option<tokio::sync::oneshot::Sender<()>>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(|sender| sender.send(()).unwrap());
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_reads_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, dropped) = tokio::sync::oneshot::channel();
        let dropped_once = Arc::new(std::sync::Mutex::new(Some(Dropped(Some(sender)))));
        let endless = move || {
            let held = dropped_once.lock().unwrap().take();
            let chunks = futures::stream::repeat_with(move || {
                let _ = &held;
                Ok::<_, Infallible>(vec![0; 1 << 16])
            });
            async { Body::from_stream(chunks) }
        };
        let router = Router::new().route("/", get(endless));
        let limits = Limits { head: HEAD, read: Duration::ZERO, connections: CONNECTIONS };
        tokio::spawn(serve_within(listener, router, limits));
        let mut unread = TcpStream::connect(address).await.unwrap();
        unread.write_all(HELLO).await.unwrap();
        dropped.await.unwrap();
    }
}
