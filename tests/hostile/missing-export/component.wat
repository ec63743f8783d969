;; It can be initialised, and then scores nothing.
(component
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing)))
