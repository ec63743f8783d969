//! The room for the sessions of an episode. All of it is taken at once: an episode that held the memory of one plugin
//! while it waited for the memory of another could wait forever.

use super::component::Agent;
use crate::call::Loaded;
use crate::engine::SessionRooms;
use crate::error::LoadError;
use crate::tool::Tool;

impl SessionRooms {
    /// Refuses an agent and tools whose sessions would never have room side by side.
    ///
    /// # Errors
    /// Their memory limits together exceed what all sessions may have, or there are more than may be at once.
    pub fn check<'a>(agent: Option<&'a Agent>, tools: impl IntoIterator<Item = &'a Tool>) -> Result<(), LoadError> {
        let kept = kept(agent, tools);
        let Some(first) = kept.first() else { return Ok(()) };
        let asked = kept.iter().map(|plugin| plugin.limits.memory).fold(0, usize::saturating_add);
        let plugins = || kept.iter().map(|plugin| plugin.name.clone()).collect();
        let allowed = first.shared.instances.session_memory_bytes();
        if asked > allowed {
            return Err(LoadError::SessionMemories { plugins: plugins(), asked, allowed });
        }
        match kept.iter().map(|plugin| plugin.slots.most_sessions()).min() {
            Some(allowed) if kept.len() > allowed => Err(LoadError::SessionSlots { plugins: plugins(), allowed }),
            _ => Ok(()),
        }
    }

    /// Waits, in turn, until there is room for one more episode, which may run `agent` and call all of `tools`. `None`
    /// once the sandbox is shut down.
    pub async fn wait<'a>(agent: Option<&'a Agent>, tools: impl IntoIterator<Item = &'a Tool>) -> Option<Self> {
        let kept = kept(agent, tools);
        let Some(first) = kept.first() else { return Some(Self::of(Vec::new())) };
        let needed: Vec<_> = kept.iter().map(|plugin| (plugin.slots.clone(), plugin.limits.memory)).collect();
        Some(Self::of(first.shared.instances.session_rooms(&needed).await?))
    }
}

/// The plugins whose instances live as long as an episode.
fn kept<'a>(agent: Option<&'a Agent>, tools: impl IntoIterator<Item = &'a Tool>) -> Vec<&'a Loaded> {
    let tools = tools.into_iter().filter(|tool| tool.keeps_state()).map(|tool| &*tool.loaded);
    agent.map(|agent| &*agent.loaded).into_iter().chain(tools).collect()
}
