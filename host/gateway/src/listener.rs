//! The port at which the gateway listens.

use crate::error::GatewayError;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

/// How long a port that is taken is tried again: a run that ended before may still have it.
const TAKEN_FOR: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Listens at the address.
///
/// # Errors
/// Its port stays taken, or cannot be used.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, GatewayError> {
    listen_within(address, TAKEN_FOR).await
}

async fn listen_within(address: SocketAddr, taken_for: Duration) -> Result<TcpListener, GatewayError> {
    let until = Instant::now() + taken_for;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == ErrorKind::AddrInUse && address.port() != 0 => {
                if Instant::now() >= until {
                    return Err(GatewayError::Taken { address });
                }
                sleep(PAUSE).await;
            }
            Err(source) => return Err(GatewayError::Listen { address, source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_taken_port_is_tried_again_and_then_named() {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = first.local_addr().unwrap();
        let error = listen_within(address, Duration::ZERO).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("gateway.address: the port of {address} is taken\nhint: ")), "{error}");
        let waiting = tokio::spawn(listen_within(address, Duration::from_secs(60)));
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(waiting.await.unwrap().unwrap().local_addr().unwrap(), address);
    }
}
