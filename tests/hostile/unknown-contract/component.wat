;; Made for a version of the contract that this host does not speak.
(component
  (instance $nothing)
  (export "gavel:plugin/lifecycle@9.9.0" (instance $nothing))
  (export "gavel:plugin/reward@9.9.0" (instance $nothing)))
