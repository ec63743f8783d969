//! Sends one request over a new connection (HTTP/1.1).

use super::access::HttpAccess;
use super::charged::Connection;
use super::refusal::Refusal;
use super::rule::{Host, Scheme};
use super::target::Target;
use crate::outside::HttpResponder;
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

/// The most bytes of a response's head, and of a body that is read ahead.
const READ_BYTES: usize = 64 << 10;

/// Why there is no response.
pub(super) enum Failure {
    /// The grants do not allow it.
    Refused(Refusal),
    /// It failed.
    Failed(Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Sends a request that the grants cover. The guest's time-outs are in real time;
/// without them, only the call's deadline applies.
pub(super) async fn send(
    access: &HttpAccess,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<(Response<WasiBody>, Connection), Failure> {
    let target = Target::of(request.uri())?;
    access.admit(&target)?;
    if let Some(responder) = &access.responder {
        return Ok(stand_in(responder.as_ref(), request).await?);
    }
    let connecting = async {
        let stream = connect(access, &target, resolve).await?;
        Ok::<_, Failure>(match target.scheme {
            Scheme::Http => Stream::Plain(stream),
            Scheme::Https => Stream::Tls(Box::new(secure(access, &target, stream).await?)),
        })
    };
    let stream = match options.connect_timeout {
        Some(limit) => timeout(limit, connecting).await.map_err(|_| Error::ConnectionTimeout)?,
        None => connecting.await,
    };
    Ok(match stream? {
        Stream::Plain(stream) => exchange(stream, request, options).await?,
        Stream::Tls(stream) => exchange(stream, request, options).await?,
    })
}

/// The most bytes of a request's body that a responder in place of servers gets.
const STAND_IN_BYTES: usize = 64 << 20;

async fn stand_in(
    responder: &dyn HttpResponder,
    request: Request<WasiBody>,
) -> Result<(Response<WasiBody>, Connection), Error> {
    let (head, body) = request.into_parts();
    let too_large = |_| Error::HttpRequestBodySize(Some(STAND_IN_BYTES as u64));
    let body = Limited::new(body, STAND_IN_BYTES).collect().await.map_err(too_large)?.to_bytes();
    let response = responder.respond(Request::from_parts(head, body)).ok_or(Error::ConnectionRefused)?;
    let response = response.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync());
    Ok((response, Box::new(async { Ok(()) })))
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

async fn resolve(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, port)).await?.collect())
}

/// Connects to an address that was checked. A name is resolved exactly once.
async fn connect<F>(
    access: &HttpAccess,
    target: &Target,
    resolve: impl FnOnce(String, u16) -> F,
) -> Result<TcpStream, Failure>
where
    F: Future<Output = io::Result<Vec<SocketAddr>>>,
{
    let no_address = |what: String| Error::DnsError { rcode: Some(what), info_code: None };
    let addresses = match &target.host {
        Host::Address(address) => vec![SocketAddr::new(*address, target.port)],
        Host::Name(name) => resolve(name.clone(), target.port).await.map_err(|error| no_address(error.to_string()))?,
    };
    let reachable = access.reachable(target, &addresses)?;
    if reachable.is_empty() {
        return Err(no_address("the name has no address".into()).into());
    }
    Ok(TcpStream::connect(&reachable[..]).await.map_err(Error::Connect)?)
}

async fn secure(access: &HttpAccess, target: &Target, stream: TcpStream) -> Result<TlsStream<TcpStream>, Error> {
    let name = match &target.host {
        Host::Address(address) => ServerName::from(*address),
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| Error::HttpRequestUriInvalid)?,
    };
    let tls = access.tls().ok_or(Error::ConfigurationError)?;
    tls.connect(name, stream).await.map_err(Error::Tls)
}

/// Sends the request and waits for the response's head.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    mut request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<(Response<WasiBody>, Connection), Error> {
    let mut http = hyper::client::conn::http1::Builder::new();
    let (mut sender, connection) = http.max_buf_size(READ_BYTES).handshake(TokioIo::new(stream)).await?;
    // It ends when the handle is dropped, and so with the call.
    let connection = wasmtime_wasi::runtime::spawn(connection);
    // Scheme and host belong in the request line only for a proxy.
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse::<Uri>().map_err(|_| Error::HttpRequestUriInvalid)?;
    let response = sender.send_request(request);
    let response = match options.first_byte_timeout {
        Some(limit) => timeout(limit, response).await.map_err(|_| Error::ConnectionReadTimeout)?,
        None => response.await,
    };
    let response =
        response?.map(|body| Paced { body, pause: options.between_bytes_timeout, timer: None }.boxed_unsync());
    Ok((response, Box::new(async move { connection.await.map_err(Error::from) })))
}

/// A body that fails if the server pauses for too long.
struct Paced {
    body: Incoming,
    pause: Option<Duration>,
    /// Runs while the body waits for its next part.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Body for Paced {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.timer = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Error::from)));
        }
        let Some(pause) = self.pause else { return Poll::Pending };
        ready!(self.timer.get_or_insert_with(|| Box::pin(sleep(pause))).as_mut().poll(cx));
        Poll::Ready(Some(Err(Error::ConnectionReadTimeout)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::http::rule::Rule;
    use std::cell::Cell;
    use std::sync::Arc;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{RootCertStore, ServerConfig};

    /// A connection to `localhost`, where a server shows a certificate for `certified`.
    async fn secure_connection(certified: &str) -> Result<TlsStream<TcpStream>, Error> {
        let made = rcgen::generate_simple_self_signed([certified.to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            // Fails if the client does not trust the certificate.
            let _ = TlsAcceptor::from(Arc::new(server)).accept(stream).await;
        });
        let url = format!("https://localhost:{}", address.port());
        let access = HttpAccess::with_roots(vec![Rule::parse(&url).unwrap()], roots);
        let target = Target::of(&url.parse().unwrap()).unwrap();
        secure(&access, &target, TcpStream::connect(address).await.unwrap()).await
    }

    #[tokio::test]
    async fn a_certificate_must_be_for_the_host_that_was_asked() {
        assert!(secure_connection("localhost").await.is_ok());
        let error = secure_connection("judge.example").await.err().unwrap();
        assert!(matches!(&error, Error::Tls(error) if error.to_string().contains("certificate")), "{error}");
    }

    async fn reach(
        grant: &str,
        uri: &str,
        resolve: impl FnOnce(String, u16) -> std::future::Ready<io::Result<Vec<SocketAddr>>>,
    ) -> Result<TcpStream, Failure> {
        let access = HttpAccess::open(vec![Rule::parse(grant).unwrap()], None).unwrap();
        let target = Target::of(&uri.parse().unwrap()).unwrap();
        access.admit(&target)?;
        connect(&access, &target, resolve).await
    }

    #[tokio::test]
    async fn a_name_is_resolved_once_and_its_loopback_is_not_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Cell::new(0);
        let rebinding = |name: String, port| {
            assert_eq!(name, "judge.example");
            asked.set(asked.get() + 1);
            std::future::ready(Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]))
        };
        let server = format!("http://judge.example:{port}");
        let answer = reach(&server, &server, rebinding).await;
        assert!(matches!(answer, Err(Failure::Refused(Refusal::Address(_, address))) if address.is_loopback()));
        assert_eq!(asked.get(), 1);
    }

    #[tokio::test]
    async fn the_connection_goes_to_the_address_that_was_checked() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = format!("http://localhost:{}", address.port());
        let stream = reach(&server, &server, |_, _| std::future::ready(Ok(vec![address]))).await.ok().unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert_eq!(listener.accept().await.unwrap().1, stream.local_addr().unwrap());
    }
}
