//! Runs a compiled program.

use crate::libc::{self, State, Streams, functions};
use wasmi::{Caller, Config, Engine, Error, Extern, Instance, Linker, Module, Store};

/// Calls within calls, and the bytes of their values. C's own stack has 8 MiB beside that.
const FRAMES: usize = 200_000;
const VALUES: usize = 64 << 20;
/// The status of a program that a signal ends, which `abort` raises.
const ABORTED: i32 = 134;

pub fn engine() -> Engine {
    let mut config = Config::default();
    config.set_max_recursion_depth(FRAMES).set_max_stack_height(VALUES);
    config.compilation_mode(wasmi::CompilationMode::LazyTranslation);
    Engine::new(&config)
}

/// The end of a program: its status, or what went wrong.
pub type End = Result<i32, String>;

/// Runs a program. Returns its end and its answers.
pub fn run(wasm: &[u8], answers: bool) -> Result<(End, Vec<String>), String> {
    let engine = engine();
    let module = Module::new(&engine, wasm).map_err(|error| error.to_string())?;
    let mut linker = Linker::new(&engine);
    libc::link(&mut linker).and_then(|()| ends(&mut linker)).map_err(|error| error.to_string())?;
    if answers {
        answering(&mut linker).map_err(|error| error.to_string())?;
    }
    let streams = Streams::new(answers);
    let mut store = Store::new(&engine, State::new(streams));
    let instance =
        linker.instantiate_and_start(&mut store, &module).map_err(|error| format!("it cannot be linked: {error}"))?;
    store.data_mut().memory = instance.get_export(&store, "memory").and_then(Extern::into_memory);
    let end = main(&instance, &mut store);
    store.data_mut().streams.flush();
    Ok((end, std::mem::take(&mut store.data_mut().answers)))
}

fn main(instance: &Instance, store: &mut Store<State>) -> End {
    let run = instance.get_typed_func::<(), i32>(&*store, "__run").map_err(|error| error.to_string())?;
    let mut end = ended(run.call(&mut *store, ()));
    let call = instance.get_typed_func::<u32, ()>(&*store, "__call").map_err(|error| error.to_string())?;
    while let (Ok(status), Some(function)) = (&end, store.data_mut().at_exit.pop()) {
        let status = *status;
        end = ended(call.call(&mut *store, function).map(|()| status));
    }
    end
}

fn ended(result: Result<i32, Error>) -> End {
    result.or_else(|error| error.i32_exit_status().ok_or_else(|| error.to_string()))
}

/// The functions that end a program.
fn ends(linker: &mut Linker<State>) -> Result<(), Error> {
    linker.func_wrap("env", "exit", |status: i32| Err::<(), Error>(Error::i32_exit(status)))?;
    for name in ["_Exit", "_exit", "quick_exit"] {
        linker.func_wrap("env", name, |mut caller: Caller<State>, status: i32| {
            caller.data_mut().at_exit.clear();
            Err::<(), Error>(Error::i32_exit(status))
        })?;
    }
    functions! { linker,
        "abort" => |guest| -> () { guest.state.at_exit.clear(); guest.state.streams.write(3, b"Aborted\n"); Err(Error::i32_exit(ABORTED)) }
        "__assert_fail" => |guest, condition: u32, file: u32, line: i32| -> () {
            let words = String::from_utf8_lossy(guest.text(condition)?).into_owned();
            let file = String::from_utf8_lossy(guest.text(file)?).into_owned();
            guest.state.at_exit.clear();
            guest.state.streams.flush();
            guest.state.streams.write(3, format!("{file}:{line}: Assertion `{words}' failed.\n").as_bytes());
            Err(Error::i32_exit(ABORTED))
        }
        "atexit" => |guest, function: u32| -> i32 { guest.state.at_exit.push(function); Ok(0) }
        "__main_argc_argv_envp" => |guest, _count: i32, _list: u32, _environment: u32| -> i32 { Err(Error::new("there is no main")) }
        "getenv" => |guest, _name: u32| -> u32 { Ok(0) }
        "system" => |guest, _command: u32| -> i32 { Ok(-1) }
        "time" => |guest, to: u32| -> i64 {
            if to != 0 {
                guest.put(to, &0i64.to_le_bytes())?;
            }
            Ok(0)
        }
        "clock" => |guest| -> i64 { Ok(0) }
        "difftime" => |guest, a: i64, b: i64| -> f64 { Ok((a - b) as f64) }
        "clock_gettime" => |guest, _clock: i32, to: u32| -> i32 { guest.put(to, &[0; 16])?; Ok(0) }
    }
    Ok(())
}

/// The functions that give an answer.
fn answering(linker: &mut Linker<State>) -> Result<(), Error> {
    functions! { linker,
        "__answer_signed" => |guest, value: i64| -> () { guest.state.answers.push(value.to_string()); Ok(()) }
        "__answer_unsigned" => |guest, value: u64| -> () { guest.state.answers.push(value.to_string()); Ok(()) }
        "__answer_bool" => |guest, value: i32| -> () { guest.state.answers.push((value != 0).to_string()); Ok(()) }
        "__answer_real" => |guest, value: f64| -> () {
            // JSON has no infinity.
            guest.state.answers.push(serde_json::Value::from(value).to_string());
            Ok(())
        }
        "__answer_text" => |guest, at: u32| -> () {
            let line = match at {
                0 => "null".to_owned(),
                _ => serde_json::Value::from(text(guest.text(at)?)).to_string(),
            };
            guest.state.answers.push(line);
            Ok(())
        }
        "__answer_pointer" => |guest, at: u32| -> () {
            guest.state.answers.push(if at == 0 { "null" } else { "true" }.to_owned());
            Ok(())
        }
    }
    Ok(())
}

/// A text as an answer. What is not UTF-8 is its bytes as characters after a zero, which no text of C has.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => std::iter::once('\0').chain(bytes.iter().copied().map(char::from)).collect(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_text_that_is_not_utf_8_is_no_other_text() {
        assert_eq!(super::text("é".as_bytes()), "é");
        assert_eq!(super::text(b"a\xff"), "\0aÿ");
    }
}
