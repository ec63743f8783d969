;; Not an attack: the component that the raw attacks change.
(core module $attack
  (import "honest" "memory" (memory 1))
  (import "honest" "finish" (func $finish (param i32 i32)))
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (call $finish (local.get $sample) (local.get $reference))
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "honest" (instance $honest))))
