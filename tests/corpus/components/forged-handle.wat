;; Asks for the response of a sample that it was never given.
(core module $attack
  (import "host" "response" (func $response (param i32 i32)))
  (func (export "score") (param $sample i32) (param $reference i32) (result i32)
    (call $response (i32.const 4096) (i32.const 512))
    (i32.const 256)))
(core instance $attack (instantiate $attack (with "host" (instance $host))))
