;; Half of it is made for a version of the contract that this host does not
;; speak.
(component
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing))
  (export "gavel:plugin/reward@9.9.0" (instance $nothing)))
