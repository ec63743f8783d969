//! Sends a request, once it has its turn, to the server that was chosen for it.

use super::access::HttpAccess;
use super::charged::Connection;
use super::send::{self, Failure};
use super::target::Target;
use crate::outside::CallMeter;
use crate::tape::QueueTime;
use gavel_endpoint::{ChosenServer, Reported, Turn};
use http::{Request, Response};
use std::time::{Duration, SystemTime};
use wasmtime_wasi_http::{RequestOptions, WasiBody};

/// The longest pause that a server may ask for, since others may share its limiter.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Sends a request, once it has its turn, for which it waits in `queued`. The turn ends with the response's body.
pub(super) async fn send(
    access: &HttpAccess,
    meter: &CallMeter,
    mut request: Request<WasiBody>,
    options: RequestOptions,
    queued: &QueueTime,
) -> Result<(Response<WasiBody>, Connection), Failure> {
    let target = Target::of(request.uri())?;
    access.admit(&target)?;
    queued.start();
    let (turn, server) = turn_and_server(access, meter, &mut request).await?;
    queued.stop();
    let sent = send::send(access, request, options).await;
    if let Some(server) = server {
        match &sent {
            Ok((response, _)) if response.status().is_server_error() => {
                server.failed(&format_args!("it answered {}", response.status()));
            }
            Ok(_) => server.answered(),
            Err(Failure::Failed(error)) => server.failed(error),
            Err(Failure::Refused(_)) => {}
        }
    }
    let (response, connection) = sent?;
    let Some(mut turn) = turn else { return Ok((response, connection)) };
    turn.report(Reported::read(response.headers(), SystemTime::now()).at_most(LONGEST_PAUSE));
    let connection = async move {
        let _turn = turn;
        Box::into_pin(connection).await
    };
    Ok((response, Box::new(connection)))
}

/// Waits for the turn of a request, and for the server that it goes to if there are several.
async fn turn_and_server<'a>(
    access: &'a HttpAccess,
    meter: &CallMeter,
    request: &mut Request<WasiBody>,
) -> Result<(Option<Turn>, Option<ChosenServer<'a>>), Failure> {
    let pool = access.pool.as_ref().filter(|pool| pool.is_for(request.uri()));
    loop {
        // A request that waits for a server must not hold a turn meanwhile.
        if let Some(pool) = pool {
            pool.wait_until_up(meter).await?;
        }
        let turn = match &access.limit {
            Some(limit) => Some(limit.turn(meter).await),
            None => None,
        };
        let Some(pool) = pool else { return Ok((turn, None)) };
        // The servers may have gone down meanwhile.
        if let Some(server) = pool.choose(request)? {
            return Ok((turn, Some(server)));
        }
    }
}
