;; Waits forever on a shared memory, which would take its thread away from the
;; host.
(core module $attack
  (import "honest" "finish" (func $finish (param i32 i32)))
  (memory 1 1 shared)
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))
    (call $finish (local.get $sample) (local.get $reference))
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "honest" (instance $honest))))
