;; Acts for the policy and asks for samples, which were made of the answer key.
(component
  (import "gavel:plugin/samples@0.1.0" (instance))
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing))
  (export "gavel:plugin/agent@0.1.0" (instance $nothing)))
