//! The terminal on which a run is watched: its keys, its size, and how it is left.

use super::panel::{self, View};
use super::watched::{PERIOD, Watched};
use crate::terminal;
use anyhow::{Context, Result};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Shows a panel until the user leaves it, and leaves the terminal as it was.
pub fn show(mut watched: Watched) -> Result<()> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stopped.clone()).context("cannot handle signals")?;
    }
    let mut screen = ratatui::try_init().context("cannot draw on this terminal\nhint: use --ui line")?;
    let shown = follow(&mut screen, &mut watched, &stopped);
    let restored = ratatui::try_restore().context("cannot restore the terminal\nhint: run `reset`");
    shown.and(restored)
}

fn follow(screen: &mut ratatui::DefaultTerminal, watched: &mut Watched, stopped: &AtomicBool) -> Result<()> {
    let mut view = View::with_colours(terminal::allows_colours());
    while !stopped.load(Ordering::Relaxed) {
        watched.read_new()?;
        screen.draw(|frame| panel::draw(frame, watched, &view)).context("cannot draw")?;
        let next = Instant::now() + PERIOD;
        while event::poll(next.saturating_duration_since(Instant::now())).context("cannot read keys")? {
            match event::read().context("cannot read keys")? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Down | KeyCode::Char('j') => view.choose(1, watched),
                    KeyCode::Up | KeyCode::Char('k') => view.choose(-1, watched),
                    KeyCode::PageDown => view.choose(10, watched),
                    KeyCode::PageUp => view.choose(-10, watched),
                    KeyCode::Home => view.choose(isize::MIN, watched),
                    KeyCode::End => view.choose(isize::MAX, watched),
                    _ => continue,
                },
                Event::Resize(..) => {}
                _ => continue,
            }
            screen.draw(|frame| panel::draw(frame, watched, &view)).context("cannot draw")?;
        }
    }
    Ok(())
}
