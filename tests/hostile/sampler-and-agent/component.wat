;; Decides what is learned as a sampler and acts for the policy as an agent.
(component
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.2.0" (instance $nothing))
  (export "gavel:plugin/sampler@0.2.0" (instance $nothing))
  (export "gavel:plugin/agent@0.2.0" (instance $nothing)))
