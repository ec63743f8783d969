;; It can be initialised but has no function that scores.
(component
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing)))
