;; Never returns when the host asks for room for a string: a loop inside a host
;; call.
(core module $attack
  (import "honest" "memory" (memory 1))
  (import "honest" "hooks" (table $hooks 2 funcref))
  (import "honest" "finish" (func $finish (param i32 i32)))
  (import "host" "response" (func $response (param i32 i32)))
  (elem declare func $realloc)
  (func $realloc (param i32 i32 i32 i32) (result i32) (loop $again (br $again)) unreachable)
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (table.set $hooks (i32.const 0) (ref.func $realloc))
    (call $response (local.get $sample) (i32.const 512))
    (call $finish (local.get $sample) (local.get $reference))
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "honest" (instance $honest)) (with "host" (instance $host))))
