;; Keeps the handles of its sample and reference beyond the call.
(core module $attack
  (import "honest" "memory" (memory 1))
  (import "honest" "finish" (func $finish (param i32 i32)))
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "honest" (instance $honest))))
