//! What a tracker can be sent.

use crate::about::About;
use crate::error::{Result, TrackingError};
use crate::mlflow::Mlflow;
use crate::numbers::Numbers;
use crate::sent::Sent;
use crate::table::{TrackerKind, TrackerTable};
use crate::trackio::Trackio;
use crate::wandb::Wandb;
use crate::webhook::Webhook;
use gavel_runs::Ending;
use std::time::Duration;

/// A tracker of a run.
pub(crate) enum Tracker {
    Wandb(Wandb),
    Mlflow(Mlflow),
    Trackio(Trackio),
    Webhook(Webhook),
}

impl Tracker {
    /// Reads the keys; nothing is sent yet. Each request may take `timeout`.
    ///
    /// # Errors
    /// It cannot be used as it is configured.
    pub(crate) fn new(table: &TrackerTable, timeout: Duration) -> std::result::Result<Self, TrackingError> {
        table.check().map_err(|(key, what)| TrackingError::Table { tracker: table.name().to_owned(), key, what })?;
        Ok(match table.kind {
            TrackerKind::Wandb => Self::Wandb(Wandb::new(table)),
            TrackerKind::Mlflow => Self::Mlflow(Mlflow::new(table, timeout)?),
            TrackerKind::Trackio => Self::Trackio(Trackio::new(table, timeout)?),
            TrackerKind::Webhook => Self::Webhook(Webhook::new(table, timeout)?),
        })
    }

    /// Where it keeps the run.
    pub(crate) fn target(&self) -> String {
        match self {
            Self::Wandb(wandb) => wandb.target(),
            Self::Mlflow(mlflow) => mlflow.target(),
            Self::Trackio(trackio) => trackio.target(),
            Self::Webhook(webhook) => webhook.target(),
        }
    }

    /// Whether it gets the numbers of steps.
    pub(crate) fn takes_numbers(&self) -> bool {
        !matches!(self, Self::Webhook(_))
    }

    /// Tells it of the run and its configuration. Told again, it is the same run.
    pub(crate) async fn begin(&self, about: &About, sent: &mut Sent) -> Result<()> {
        match self {
            Self::Mlflow(mlflow) => mlflow.begin(about, sent).await,
            Self::Trackio(trackio) => trackio.begin().await,
            Self::Wandb(_) | Self::Webhook(_) => Ok(()),
        }
    }

    /// Tells it that a run that had ended continues.
    pub(crate) async fn resume(&self, sent: &Sent) -> Result<()> {
        match self {
            Self::Mlflow(mlflow) => mlflow.resume(sent).await,
            Self::Trackio(_) | Self::Wandb(_) | Self::Webhook(_) => Ok(()),
        }
    }

    /// Sends numbers. Sent again, they are the same numbers.
    pub(crate) async fn log(&self, about: &About, sent: &Sent, numbers: &[Numbers]) -> Result<()> {
        match self {
            Self::Mlflow(mlflow) => mlflow.log(sent, numbers).await,
            Self::Trackio(trackio) => trackio.log(about, sent, numbers).await,
            Self::Wandb(_) | Self::Webhook(_) => Ok(()),
        }
    }

    /// Tells it how the run ended.
    pub(crate) async fn end(&self, about: &About, sent: &Sent, ending: &Ending) -> Result<()> {
        match self {
            Self::Mlflow(mlflow) => mlflow.end(sent, ending).await,
            Self::Webhook(webhook) => webhook.end(about, ending).await,
            Self::Trackio(_) | Self::Wandb(_) => Ok(()),
        }
    }
}
