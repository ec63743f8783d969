;; Returns 2 million metrics that are 32 MiB of zeroes. The host's own copy of
;; them would be larger than everything that the plugin may return.
(core module $attack
  (import "honest" "memory" (memory 1))
  (import "honest" "finish" (func $finish (param i32 i32)))
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (call $finish (local.get $sample) (local.get $reference))
    (drop (memory.grow (i32.const 512)))
    (i32.store (i32.const 280) (i32.const 65536))
    (i32.store (i32.const 284) (i32.const 2000000))
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "honest" (instance $honest))))
