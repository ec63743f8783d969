;; Imports a language model, which nothing grants to this reward.
(component
  (import "gavel:plugin/chat@0.1.0" (instance))
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing))
  (export "gavel:plugin/reward@0.1.0" (instance $nothing)))
