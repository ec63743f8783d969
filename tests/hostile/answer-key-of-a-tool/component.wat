;; Acts for the policy and asks for the answer key.
(component
  (import "gavel:plugin/references@0.1.0" (instance))
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing))
  (export "gavel:plugin/tool@0.1.0" (instance $nothing)))
