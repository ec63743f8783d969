//! Asking the hub over HTTP: which files a revision has, and their content. The crate `hf-hub` is not used: it does not
//! compare a download with its hash.

use crate::cache::home;
use crate::error::HubError;
use crate::repository::Repository;
use backon::{ExponentialBuilder, Retryable};
use gavel_data::files::read_regular_text;
use gavel_endpoint::tls_client_config;
use reqwest::header::{AUTHORIZATION, HeaderValue, LOCATION, RANGE};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode, Url};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use serde::Deserialize;
use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

const ENDPOINT: &str = "https://huggingface.co";
/// Short, so that a machine without a network fails soon.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may be silent.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a revision's list of files may take: a server that is never silent for long may send it byte by byte. Files
/// have no such limit, as their download goes on where it ended.
const LIST_TIMEOUT: Duration = Duration::from_secs(300);
/// Attempts after the first, with pauses that double from a second on.
const RETRIES: usize = 5;
/// The most redirects of a request.
const MOST_REDIRECTS: usize = 10;
/// The most bytes of the file with the token.
const TOKEN_BYTES: u64 = 4096;
/// The most bytes of the list of a revision's files, of which each takes some 200.
const LIST_BYTES: usize = 64 << 20;
/// The most characters that are shown of the hub's error message.
const SHOWN_CHARACTERS: usize = 300;

/// The token and where it is from. It is read once: a pipe has nothing a second time.
static TOKEN: OnceLock<Option<(String, String)>> = OnceLock::new();

/// The HTTP client that asks the hub. It has no `Debug`, because it holds the token.
pub(crate) struct Client {
    http: reqwest::Client,
    token: Option<HeaderValue>,
    pub(crate) endpoint: Url,
    /// The variable or file with the token.
    pub(crate) token_from: Option<String>,
    list_timeout: Duration,
}

/// A revision's commit and files.
#[derive(Deserialize)]
pub(crate) struct Listing {
    #[serde(rename = "sha")]
    pub(crate) commit: String,
    #[serde(rename = "siblings")]
    pub(crate) files: Vec<RemoteFile>,
}

/// A file of the hub.
#[derive(Debug, Deserialize)]
pub(crate) struct RemoteFile {
    #[serde(rename = "rfilename")]
    pub(crate) name: String,
    pub(crate) size: u64,
    /// The hash that Git has of it: SHA-1 of a header and the content.
    #[serde(rename = "blobId")]
    git_hash: String,
    lfs: Option<LargeFile>,
}

/// A file that Git LFS keeps: in Git, it has only the hash of a pointer.
#[derive(Debug, Deserialize)]
struct LargeFile {
    sha256: String,
}

/// Why there is no answer.
pub(crate) enum Failure {
    /// The server cannot be reached.
    Unreached(String),
    /// The connection breaks off.
    Lost(String),
    /// The hub refuses.
    Status { status: StatusCode, code: String, answer: String },
    /// The answer is not what it should be.
    Broken(String),
    /// The file cannot be written.
    Write(io::Error),
}

impl RemoteFile {
    /// The hash of its content.
    pub(crate) fn hash(&self) -> &str {
        self.lfs.as_ref().map_or(&self.git_hash, |large| &large.sha256)
    }

    /// Whether its name and hash are safe as names of local files.
    fn is_safe(&self) -> bool {
        let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0']);
        self.name.split('/').all(is_part) && is_hex(self.hash())
    }

    /// Whether a file of its size has its content.
    fn is_in(&self, mut file: &File) -> io::Result<bool> {
        let mut context = match self.lfs {
            Some(_) => Context::new(&SHA256),
            None => Context::new(&SHA1_FOR_LEGACY_USE_ONLY),
        };
        if self.lfs.is_none() {
            context.update(format!("blob {}\0", self.size).as_bytes());
        }
        file.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => context.update(&buffer[..read]),
            }
        }
        let found: String = context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(found == self.hash())
    }
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Client {
    /// Reads `HF_ENDPOINT` and the token; nothing is sent yet.
    pub(crate) fn new() -> Result<Self, HubError> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let endpoint = set("HF_ENDPOINT").map_or_else(|| ENDPOINT.into(), |value| value.display().to_string());
        let wrong = |what: String| HubError::Variable { variable: "HF_ENDPOINT".into(), what };
        let endpoint = Url::parse(&endpoint).map_err(|error| wrong(error.to_string()))?;
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(wrong("it starts neither with https:// nor with http://".into()));
        }
        // The address is shown in messages.
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(wrong("a token does not belong here; set it in HF_TOKEN".into()));
        }
        let (mut header, mut token_from) = (None, None);
        if let Some((variable, token)) = TOKEN.get_or_init(|| token(set)).clone() {
            let wrong = || HubError::Variable { variable: variable.clone(), what: "it does not hold a token".into() };
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| wrong())?;
            value.set_sensitive(true);
            (header, token_from) = (Some(value), Some(variable));
        }
        let http = reqwest::Client::builder()
            // `get` follows redirects: reqwest would send the token to a server that redirects within itself.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .https_only(endpoint.scheme() == "https")
            .tls_backend_preconfigured(tls_client_config()?)
            .build()
            .map_err(|error| HubError::Client(error.to_string()))?;
        Ok(Self { http, token: header, endpoint, token_from, list_timeout: LIST_TIMEOUT })
    }

    /// The files of a revision.
    pub(crate) async fn list(&self, repository: &Repository, revision: &str) -> Result<Listing, Failure> {
        let Repository { kind, organisation, name, .. } = repository;
        let kinds = format!("{kind}s");
        let mut url = self.url(&["api", &kinds, organisation, name, "revision", revision])?;
        url.set_query(Some("blobs=true"));
        let body = retrying(|| self.body_in_time(&url, LIST_BYTES)).await?;
        let listing: Listing = serde_json::from_slice(&body)
            .map_err(|error| Failure::Broken(format!("{url} does not answer as the hub does: {error}")))?;
        match listing.files.iter().find(|file| !file.is_safe()) {
            _ if !is_hex(&listing.commit) => Err(Failure::Broken(format!("{url} names no commit"))),
            Some(file) => {
                Err(Failure::Broken(format!("{url} lists a file with an unsafe name or hash: {:?}", file.name)))
            }
            None => Ok(listing),
        }
    }

    /// Downloads a file; `partial` has the bytes that came before.
    pub(crate) async fn download(
        &self,
        repository: &Repository,
        commit: &str,
        remote: &RemoteFile,
        partial: &File,
    ) -> Result<(), Failure> {
        let page = repository.page();
        let path = page.split('/').chain(["resolve", commit]).chain(remote.name.split('/'));
        let url = self.url(&path.collect::<Vec<_>>())?;
        retrying(|| self.fill(&url, remote, partial)).await?;
        if remote.is_in(partial)? {
            return Ok(());
        }
        partial.set_len(0)?;
        Err(Failure::Broken("the downloaded file does not have the hub's hash".into()))
    }

    /// The whole of an answer with at most `most` bytes, if it comes within `list_timeout`.
    async fn body_in_time(&self, url: &Url, most: usize) -> Result<Vec<u8>, Failure> {
        match tokio::time::timeout(self.list_timeout, self.body(url, most)).await {
            Ok(body) => body,
            Err(_) => Err(Failure::Broken(format!(
                "{url}: the answer was not whole after {} s",
                self.list_timeout.as_secs_f64()
            ))),
        }
    }

    /// The whole of an answer with at most `most` bytes.
    async fn body(&self, url: &Url, most: usize) -> Result<Vec<u8>, Failure> {
        let mut response = self.get(url.clone(), 0).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| lost(url, &error))? {
            body.extend_from_slice(&chunk);
            if body.len() > most {
                return Err(Failure::Broken(format!("{url} answers with more than {most} bytes")));
            }
        }
        Ok(body)
    }

    /// Adds the missing bytes of a file.
    async fn fill(&self, url: &Url, remote: &RemoteFile, mut partial: &File) -> Result<(), Failure> {
        let mut length = partial.seek(SeekFrom::End(0))?;
        if length == remote.size {
            return Ok(());
        }
        let mut response = self.get(url.clone(), if length < remote.size { length } else { 0 }).await?;
        if response.status() != StatusCode::PARTIAL_CONTENT {
            length = 0;
            partial.set_len(0)?;
            partial.seek(SeekFrom::Start(0))?;
        }
        while let Some(chunk) = response.chunk().await.map_err(|error| lost(url, &error))? {
            length += chunk.len() as u64;
            if length > remote.size {
                break;
            }
            partial.write_all(&chunk)?;
        }
        if length == remote.size {
            return Ok(());
        }
        if length > remote.size {
            partial.set_len(0)?;
        }
        Err(Failure::Lost(format!("{url}: expected {} bytes, but {length} came", remote.size)))
    }

    /// The answer from byte `start` on, if the server can. Redirects lead to where the content is kept.
    async fn get(&self, url: Url, start: u64) -> Result<Response, Failure> {
        let mut place = url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let mut request = self.http.get(place.clone());
            if start > 0 {
                request = request.header(RANGE, format!("bytes={start}-"));
            }
            // Only the hub gets the token.
            if let Some(token) = self.token.as_ref().filter(|_| place.origin() == self.endpoint.origin()) {
                request = request.header(AUTHORIZATION, token);
            }
            let response = request.send().await.map_err(|error| lost(&url, &error))?;
            let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(location) = location else { return Self::checked(&url, response) };
            let next = location.to_str().ok().and_then(|location| place.join(location).ok());
            place = next.ok_or_else(|| Failure::Broken(format!("{url} redirects to what is not an address")))?;
        }
        Err(Failure::Broken(format!("{url} redirects more than {MOST_REDIRECTS} times")))
    }

    /// The response to a request for `url`, if it is a success.
    fn checked(url: &Url, response: Response) -> Result<Response, Failure> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let (code, said) = (header("x-error-code").unwrap_or_default(), header("x-error-message"));
        let said = said.map(|said| format!(" ({})", said.chars().take(SHOWN_CHARACTERS).collect::<String>()));
        let answer = format!("{url} answered {status}{}", said.unwrap_or_default());
        Err(Failure::Status { status, code, answer })
    }

    fn url(&self, path: &[&str]) -> Result<Url, Failure> {
        let mut url = self.endpoint.clone();
        let Ok(mut segments) = url.path_segments_mut() else {
            return Err(Failure::Broken("HF_ENDPOINT has no paths".into()));
        };
        segments.pop_if_empty().extend(path);
        drop(segments);
        Ok(url)
    }
}

/// Asks again if that may help: not if the server cannot be reached, and not if the hub refuses.
async fn retrying<T, F: Future<Output = Result<T, Failure>>>(attempt: impl FnMut() -> F) -> Result<T, Failure> {
    let pauses = ExponentialBuilder::default().with_min_delay(Duration::from_secs(1)).with_max_times(RETRIES);
    attempt.retry(pauses).when(Failure::may_pass).await
}

impl Failure {
    fn may_pass(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Status { status, .. } => status.is_server_error() || matches!(status.as_u16(), 408 | 429),
            Self::Unreached(_) | Self::Broken(_) | Self::Write(_) => false,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// The token, and the variable or file that it is in.
fn token(set: impl Fn(&str) -> Option<PathBuf>) -> Option<(String, String)> {
    for name in ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"] {
        if let Some(token) = set(name).and_then(|value| Some(value.to_str()?.trim().to_owned())) {
            return Some((name.into(), token));
        }
    }
    let (path, text) = match set("HF_TOKEN_PATH") {
        // It may be a pipe from a program that keeps the token.
        Some(path) => (path.clone(), read_named(&path)),
        None => {
            let path = home(&set)?.join("token");
            (path.clone(), read_regular_text(&path, TOKEN_BYTES))
        }
    };
    let token = text.ok()?.trim().to_owned();
    (!token.is_empty()).then(|| (path.display().to_string(), token))
}

/// The text of what the user names, if it is not too long for a token.
fn read_named(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TOKEN_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 {
        0..=TOKEN_BYTES => Ok(text),
        _ => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

fn lost(url: &Url, error: &reqwest::Error) -> Failure {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let what = if error.is_timeout() { "no answer in time".to_owned() } else { cause.to_string() };
    match error.is_connect() {
        true => Failure::Unreached(format!("{url}: {what}")),
        false => Failure::Lost(format!("{url}: {what}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::process::Command;

    #[test]
    fn a_token_may_come_from_a_pipe_that_the_user_names() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("token"));
        let make_pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let found = |variable: &str, path: &Path| token(|name| (name == variable).then(|| path.to_owned()));
        make_pipe(&pipe);
        std::thread::scope(|scope| {
            scope.spawn(|| std::fs::write(&pipe, "hf_pipe\n").unwrap());
            assert_eq!(found("HF_TOKEN_PATH", &pipe), Some((pipe.display().to_string(), "hf_pipe".into())));
        });
        let longest = "x".repeat(TOKEN_BYTES as usize);
        for (text, expected) in
            [("hf_file\n", Some("hf_file")), (longest.as_str(), Some(longest.as_str())), (" \n", None)]
        {
            std::fs::write(&file, text).unwrap();
            for (variable, path) in [("HF_TOKEN_PATH", &*file), ("HF_HOME", folder.path())] {
                assert_eq!(found(variable, path).map(|(_, token)| token).as_deref(), expected, "{variable}");
            }
        }
        std::fs::write(&file, format!("{longest}x")).unwrap();
        assert_eq!((found("HF_TOKEN_PATH", &file), found("HF_HOME", folder.path())), (None, None));
        assert_eq!(found("HF_TOKEN_PATH", Path::new("/dev/zero")), None);
        // Nobody writes to this pipe, and nobody named it.
        std::fs::remove_file(&file).unwrap();
        make_pipe(&file);
        assert_eq!(found("HF_HOME", folder.path()), None);
    }

    #[test]
    fn an_answer_without_end_is_not_read_to_its_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let server = std::thread::spawn(move || {
            for pieces in [1, usize::MAX] {
                let (mut connection, _) = listener.accept().unwrap();
                let mut request = BufReader::new(connection.try_clone().unwrap()).lines();
                while !request.next().unwrap().unwrap().is_empty() {}
                write!(connection, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").unwrap();
                // Until the client leaves.
                (0..pieces).take_while(|_| connection.write_all(&[b'x'; 1000]).is_ok()).count();
            }
        });
        let http = reqwest::Client::builder().tls_backend_preconfigured(tls_client_config().unwrap());
        let client =
            Client { http: http.build().unwrap(), token: None, endpoint, token_from: None, list_timeout: LIST_TIMEOUT };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let body = || runtime.block_on(client.body(&client.endpoint, 1000));
        assert_eq!(body().ok().unwrap(), vec![b'x'; 1000]);
        let Err(Failure::Broken(what)) = body() else { panic!("it was read") };
        assert_eq!(what, format!("{} answers with more than 1000 bytes", client.endpoint));
        // Ends its connections.
        drop(runtime);
        server.join().unwrap();
    }

    #[test]
    fn a_list_that_trickles_in_ends_at_its_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let server = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            // On a busy machine, the client may leave before it has asked.
            let request = BufReader::new(connection.try_clone().unwrap()).lines();
            request.take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).count();
            let _ = write!(connection, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
            // Never silent for long, and never done; until the client leaves.
            while connection.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let http = reqwest::Client::builder().tls_backend_preconfigured(tls_client_config().unwrap());
        let list_timeout = Duration::from_millis(200);
        let client = Client { http: http.build().unwrap(), token: None, endpoint, token_from: None, list_timeout };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let Err(Failure::Broken(what)) = runtime.block_on(client.body_in_time(&client.endpoint, LIST_BYTES)) else {
            panic!("it ended otherwise")
        };
        assert_eq!(what, format!("{}: the answer was not whole after 0.2 s", client.endpoint));
        // Ends its connections.
        drop(runtime);
        server.join().unwrap();
    }
}
