;; Returns a note that is not UTF-8.
(core module $attack
  (import "honest" "memory" (memory 1))
  (import "honest" "finish" (func $finish (param i32 i32)))
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (call $finish (local.get $sample) (local.get $reference))
    (i32.store8 (i32.const 4000) (i32.const 0xff))
    (i32.store8 (i32.const 296) (i32.const 1))
    (i32.store (i32.const 300) (i32.const 4000))
    (i32.store (i32.const 304) (i32.const 1))
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "honest" (instance $honest))))
