use super::*;
use crate::compile::{Cache, Compiler, Form, LoadLimits, Order, engine_config};
use wasmtime::Engine;
use wasmtime::component::{Linker, Resource, ResourceType};

/// A component that does what its calls ask: it writes bytes, sets globals, takes and drops handles, and grows its
/// memory; and that shows all of its state.
const GUEST: &str = r#"(component
    (import "thing" (type $thing (sub resource)))
    (import "make" (func $make (result (own $thing))))
    (core func $drop (canon resource.drop $thing))
    (core func $take (canon lower (func $make)))
    (core module $other
        (global (export "constant") i32 (i32.const 7))
        (global (export "e") (mut i32) (i32.const 5)))
    (core instance $other (instantiate $other))
    (core module $m
        (import "" "take" (func $take (result i32)))
        (import "" "drop" (func $drop (param i32)))
        (import "other" "constant" (global i32))
        (import "other" "e" (global $e (mut i32)))
        (memory (export "memory") 200)
        (data (i32.const 0) "\00\00\00\00\00\00\c8\00 is the place and the size of the memory")
        (data (i32.const 100000) "contents")
        (global $a (mut i32) (i32.const -1))
        (global $b (mut i64) (i64.const 0x1234567890))
        (global $c (mut f32) (f32.const nan:0x200001))
        (global $d (mut f64) (f64.const -0.0))
        (global $constant i32 (i32.const 7))
        (elem funcref (ref.func $take))
        (func (export "write") (param $at i32) (param $value i32)
            (i32.store8 (local.get $at) (local.get $value)))
        (func (export "set") (param i64)
            (global.set $a (i32.wrap_i64 (local.get 0)))
            (global.set $e (i32.wrap_i64 (local.get 0)))
            (global.set $b (local.get 0))
            (global.set $c (f32.reinterpret_i32 (i32.wrap_i64 (local.get 0))))
            (global.set $d (f64.reinterpret_i64 (local.get 0))))
        (func (export "a") (result i32) (global.get $a))
        (func (export "b") (result i64) (global.get $b))
        (func (export "c") (result i32) (i32.reinterpret_f32 (global.get $c)))
        (func (export "d") (result i64) (i64.reinterpret_f64 (global.get $d)))
        (func (export "e") (result i32) (global.get $e))
        (func (export "take") (result i32) (call $take))
        (func (export "drop") (param i32) (call $drop (local.get 0)))
        (func (export "grow") (drop (memory.grow (i32.const 1))))
        (func (export "read") (result i32) (i32.const 0)))
    (core instance $imports (export "take" (func $take)) (export "drop" (func $drop)))
    (core instance $i (instantiate $m (with "" (instance $imports)) (with "other" (instance $other))))
    (alias core export $i "memory" (core memory $memory))
    (func (export "write") (param "at" u32) (param "value" u8) (canon lift (core func $i "write")))
    (func (export "set") (param "value" s64) (canon lift (core func $i "set")))
    (func (export "a") (result s32) (canon lift (core func $i "a")))
    (func (export "b") (result s64) (canon lift (core func $i "b")))
    (func (export "c") (result s32) (canon lift (core func $i "c")))
    (func (export "d") (result s64) (canon lift (core func $i "d")))
    (func (export "e") (result s32) (canon lift (core func $i "e")))
    (func (export "take") (result u32) (canon lift (core func $i "take")))
    (func (export "drop") (param "handle" u32) (canon lift (core func $i "drop")))
    (func (export "grow") (canon lift (core func $i "grow")))
    (func (export "read") (result (list u8)) (canon lift (core func $i "read") (memory $memory))))"#;

const MEMORY: usize = 200 * WASM_PAGE;
const CONTENTS: usize = 100_000;
const HANDLES: usize = 50;

struct Thing;

struct Guest {
    store: Store<()>,
    instance: Instance,
}

/// What a call does.
#[derive(Debug, Clone)]
enum Step {
    Write(u32, u8),
    Set(i64),
    /// Takes so many handles and drops them, the one at this place of the rest first.
    Handles(usize, usize),
}

fn component() -> (Engine, Component) {
    let engine = Engine::new(&engine_config(true)).unwrap();
    let compiler = Compiler { program: None, limits: LoadLimits::default() };
    let wasm = wat::parse_str(GUEST).unwrap();
    let order = Order { component: &wasm, form: Form::Snapshot, fuel: true, functions: None };
    let component = compiler.compile(order, &Cache::default()).unwrap().load(&engine).unwrap();
    (engine, component)
}

impl Guest {
    async fn new(engine: &Engine, component: &Component) -> Self {
        let mut linker = Linker::new(engine);
        let mut root = linker.root();
        root.resource("thing", ResourceType::host::<Thing>(), |_, _| Ok(())).unwrap();
        root.func_wrap("make", |_, (): ()| Ok((Resource::<Thing>::new_own(0),))).unwrap();
        let mut store = Store::new(engine, ());
        store.set_fuel(u64::MAX).unwrap();
        store.set_epoch_deadline(1);
        store.set_max_component_handles(HANDLES);
        let instance = linker.instantiate_async(&mut store, component).await.unwrap();
        Self { store, instance }
    }

    async fn call<P, R>(&mut self, name: &str, params: P) -> R
    where
        P: wasmtime::component::ComponentNamedList + wasmtime::component::Lower + Send + Sync,
        R: wasmtime::component::ComponentNamedList + wasmtime::component::Lift + Send + Sync + 'static,
    {
        let function = self.instance.get_typed_func::<P, R>(&mut self.store, name).unwrap();
        function.call_async(&mut self.store, params).await.unwrap()
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Write(at, value) => self.call::<_, ()>("write", (*at, *value)).await,
            Step::Set(value) => self.call::<_, ()>("set", (*value,)).await,
            Step::Handles(count, place) => {
                let mut handles = Vec::new();
                for _ in 0..*count {
                    handles.push(self.call::<_, (u32,)>("take", ()).await.0);
                }
                while !handles.is_empty() {
                    let handle = handles.remove(place % handles.len());
                    self.call::<_, ()>("drop", (handle,)).await;
                }
            }
        }
    }

    /// The bytes of the memory, the globals, and the numbers of the next handles.
    async fn state(&mut self) -> (Vec<u8>, [i64; 5], Vec<u32>) {
        let (list,) = self.call::<_, (WasmList<u8>,)>("read", ()).await;
        let memory = list.as_le_slice(&self.store).to_vec();
        assert_eq!(memory.len(), MEMORY);
        let globals = [
            self.call::<_, (i32,)>("a", ()).await.0.into(),
            self.call::<_, (i64,)>("b", ()).await.0,
            self.call::<_, (i32,)>("c", ()).await.0.into(),
            self.call::<_, (i64,)>("d", ()).await.0,
            self.call::<_, (i32,)>("e", ()).await.0.into(),
        ];
        let mut handles = Vec::new();
        for _ in 0..HANDLES {
            handles.push(self.call::<_, (u32,)>("take", ()).await.0);
        }
        (memory, globals, handles)
    }
}

/// Numbers that look random and are the same in every run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A place in the memory; as often in one of the pages that a snapshot has contents for, or the last one.
    fn place(&mut self) -> usize {
        let pages = [0, CONTENTS / PAGE, MEMORY / PAGE - 1];
        let start = match self.below(2) {
            0 => PAGE * pages[self.below(pages.len())],
            _ => PAGE * self.below(MEMORY / PAGE),
        };
        // The place and the size of the memory, by which it is read, are left.
        (start + self.below(PAGE)).max(8)
    }

    fn step(&mut self) -> Step {
        match self.below(3) {
            0 => Step::Write(self.place() as u32, self.next() as u8),
            1 => Step::Set(self.next() as i64),
            _ => Step::Handles(1 + self.below(HANDLES), self.below(HANDLES)),
        }
    }
}

#[tokio::test]
async fn an_instance_that_is_set_back_equals_a_new_one() {
    let (engine, component) = component();
    let reset = Reset::of(&component).unwrap();
    let new = Guest::new(&engine, &component).await.state().await;
    let mut numbers = Numbers(1);
    for history in 0..100 {
        let mut guest = Guest::new(&engine, &component).await;
        let mut steps = Vec::new();
        for _ in 0..1 + numbers.below(4) {
            for _ in 0..numbers.below(20) {
                let step = numbers.step();
                guest.step(&step).await;
                steps.push(step);
            }
            assert!(reset.set_back(&mut guest.store, &guest.instance, HANDLES).await.unwrap(), "{steps:?}");
        }
        assert!(guest.state().await == new, "history {history} shows: {steps:?}");
    }
}

#[tokio::test]
async fn an_instance_that_grew_or_has_handles_is_not_set_back() {
    let (engine, component) = component();
    let reset = Reset::of(&component).unwrap();
    let mut guest = Guest::new(&engine, &component).await;
    guest.call::<_, ()>("grow", ()).await;
    assert!(!reset.set_back(&mut guest.store, &guest.instance, HANDLES).await.unwrap());
    let mut guest = Guest::new(&engine, &component).await;
    guest.call::<_, (u32,)>("take", ()).await;
    assert!(reset.set_back(&mut guest.store, &guest.instance, HANDLES).await.is_err());
    let mut guest = Guest::new(&engine, &component).await;
    assert!(!reset.set_back(&mut guest.store, &guest.instance, MOST_HANDLES + 1).await.unwrap());
    for page in 0..MEMORY / PAGE {
        guest.call::<_, ()>("write", ((page * PAGE + 8) as u32, 1_u8)).await;
    }
    assert!(!reset.set_back(&mut guest.store, &guest.instance, HANDLES).await.unwrap(), "so many pages were written");
}

#[test]
fn pages_that_are_next_to_each_other_are_one_stretch() {
    let written = [true, false, true, true, false, false, true];
    assert_eq!(stretches(&written), vec![0..4, 6..7]);
    assert!(stretches(&[false; 3]).is_empty());
    assert!(stretches(&[]).is_empty());
}

#[test]
fn pages_are_written_once_something_is_stored_there() {
    let mut memory = vec![0_u8; 300 * PAGE];
    let start = memory.as_ptr().addr().next_multiple_of(PAGE);
    let before = written_pages(start, 200).unwrap();
    let offset = start - memory.as_ptr().addr() + 100 * PAGE;
    memory[offset] = std::hint::black_box(1);
    let after = written_pages(start, 200).unwrap();
    assert!(after[100]);
    assert!(before.iter().zip(&after).enumerate().all(|(at, (before, after))| at == 100 || !before || *after));
}
