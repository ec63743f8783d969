;; Imports the policy, which only agents have.
(component
  (import "gavel:plugin/policy@0.1.0" (instance))
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing))
  (export "gavel:plugin/reward@0.1.0" (instance $nothing)))
