;; The interfaces are there, their functions are not.
(component
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing))
  (export "gavel:plugin/reward@0.1.0" (instance $nothing)))
