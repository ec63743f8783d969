//! Agents: programs that attempt a task, over conversations with the policy.

use crate::{Answer, Failure, Info, Task};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Custom logic between a task and its response.
///
/// ```
/// use gavel_sdk::policy::{Conversation, Options};
/// use gavel_sdk::{Agent, Answer, Failure, Info, Message, NoParams, Task};
///
/// /// Answers, and then looks at its answer once more.
/// struct SecondThought;
///
/// impl Agent for SecondThought {
///     type Params = NoParams;
///
///     fn new(_: NoParams) -> Result<Self, String> {
///         Ok(Self)
///     }
///
///     fn info(&self) -> Info {
///         Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
///     }
///
///     fn run(&self, task: &Task) -> Result<Answer, Failure> {
///         let conversation = Conversation::begin(task.prompt())?;
///         conversation.generate(&Options::default())?;
///         conversation.append(vec![Message::user("Check that, and give your final answer.")])?;
///         Ok(conversation.generate(&Options::default())?.text().into())
///     }
/// }
///
/// gavel_sdk::export_agent!(SecondThought);
/// # fn main() {}
/// ```
///
/// The conversations in which the policy wrote become the trajectories of the
/// sample. Rewards read what [`run`](Self::run) returns as its response.
pub trait Agent: Sized + 'static {
    /// The keys of `[agent.params]` in a run's configuration; [`NoParams`](crate::NoParams) if there are none.
    type Params: DeserializeOwned;

    /// Creates the plugin, once, before any task.
    ///
    /// # Errors
    /// What is wrong with the parameters, in one sentence for the user.
    fn new(params: Self::Params) -> Result<Self, String>;

    /// The plugin's name, version and promises.
    fn info(&self) -> Info;

    /// Attempts a task. Returns the response that rewards read; a text becomes an [`Answer`] with `.into()`.
    ///
    /// # Errors
    /// With a [`Failure`], the sample has no reward. [`policy::Error::Exhausted`](crate::policy::Error::Exhausted) is
    /// an exception: the policy's last message is then the response.
    fn run(&self, task: &Task) -> Result<Answer, Failure>;
}

impl Answer {
    /// A response without further data.
    pub fn new(response: impl Into<String>) -> Self {
        Self { response: response.into(), extra: None }
    }

    /// Adds a JSON object for rewards and judgers, which read it with [`Sample::extra`](crate::Sample::extra). It is
    /// recorded.
    #[must_use]
    pub fn extra(mut self, extra: impl Into<Value>) -> Self {
        self.extra = Some(extra.into().to_string());
        self
    }
}

impl From<String> for Answer {
    fn from(response: String) -> Self {
        Self::new(response)
    }
}

impl From<&str> for Answer {
    fn from(response: &str) -> Self {
        Self::new(response)
    }
}

/// Makes a type that implements [`Agent`] the component's agent. Use it once in
/// a crate of the type `cdylib`.
#[macro_export]
macro_rules! export_agent {
    ($agent:ty) => {
        const _: () = {
            $crate::__export_plugin!($agent as $crate::Agent);

            impl $crate::bindings::agent::Guest for Component {
                fn run(task: &$crate::Task) -> ::std::result::Result<$crate::Answer, $crate::Failure> {
                    INSTANCE.with(|instance| $crate::Agent::run(instance.get()?, task))
                }
            }

            #[cfg(target_family = "wasm")]
    $crate::bindings::agent::__export_agent!(Component with_types_in $crate::bindings::agent);

            #[cfg(not(target_family = "wasm"))]
            const _: () = {
                let _ = <Component as $crate::bindings::agent::Guest>::run;
            };
        };
    };
}
