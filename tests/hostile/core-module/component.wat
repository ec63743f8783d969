;; A core module where a component is needed.
(module
  (memory (export "memory") 1)
  (func (export "score") (result i32) (i32.const 1)))
