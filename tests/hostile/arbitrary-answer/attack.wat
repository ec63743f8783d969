;; Answers with arbitrary bytes: the response, two letters from `a` to `p` a
;; byte, is what it writes over its verdict and everything behind it.
(core module $attack
  (import "honest" "memory" (memory 1))
  (import "honest" "finish" (func $finish (param i32 i32)))
  (import "host" "response" (func $response (param i32 i32)))
  (func $nibble (param $at i32) (result i32)
    (i32.and (i32.sub (i32.load8_u (local.get $at)) (i32.const 97)) (i32.const 15)))
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (local $from i32) (local $end i32) (local $to i32)
    (call $response (local.get $sample) (i32.const 4000))
    (call $finish (local.get $sample) (local.get $reference))
    (local.set $from (i32.load (i32.const 4000)))
    (local.set $end (i32.add (local.get $from) (i32.load (i32.const 4004))))
    (local.set $to (i32.const 256))
    (loop $next
      (if (i32.lt_u (i32.add (local.get $from) (i32.const 1)) (local.get $end)) (then
        (i32.store8 (local.get $to) (i32.or
          (i32.shl (call $nibble (local.get $from)) (i32.const 4))
          (call $nibble (i32.add (local.get $from) (i32.const 1)))))
        (local.set $from (i32.add (local.get $from) (i32.const 2)))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br $next))))
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "honest" (instance $honest)) (with "host" (instance $host))))
