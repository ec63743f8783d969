;; Grows a table to 100 million elements, which no linear memory holds, and
;; continues if that is refused.
(core module $attack
  (import "honest" "finish" (func $finish (param i32 i32)))
  (table $table 1 funcref)
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (drop (table.grow $table (ref.null func) (i32.const 100000000)))
    (call $finish (local.get $sample) (local.get $reference))
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "honest" (instance $honest))))
