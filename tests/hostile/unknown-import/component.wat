;; Imports an interface that the host does not have.
(component
  (import "evil:corp/backdoor@1.0.0" (instance))
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing))
  (export "gavel:plugin/reward@0.1.0" (instance $nothing)))
