;; Its functions have the right names but other types.
(component
  (core module $module
    (func (export "run") (result i32) (i32.const 1)))
  (core instance $instance (instantiate $module))
  (func $run (result u32) (canon lift (core func $instance "run")))
  (instance $lifecycle (export "init" (func $run)))
  (instance $reward (export "score" (func $run)))
  (export "gavel:plugin/lifecycle@0.1.0" (instance $lifecycle))
  (export "gavel:plugin/reward@0.1.0" (instance $reward)))
