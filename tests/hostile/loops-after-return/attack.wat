;; Returns a score and never returns from its clean-up.
(core module $attack
  (import "honest" "memory" (memory 1))
  (import "honest" "hooks" (table $hooks 2 funcref))
  (import "honest" "finish" (func $finish (param i32 i32)))
  (elem declare func $after)
  (func $after (param i32) (loop $again (br $again)))
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (table.set $hooks (i32.const 1) (ref.func $after))
    (call $finish (local.get $sample) (local.get $reference))
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "honest" (instance $honest))))
