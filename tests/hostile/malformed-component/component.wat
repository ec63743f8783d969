;; A component whose code does not type-check.
(component
  (core module (func (export "score") (result i32) (f64.const 1))))
