;; Sees the answer key as a reward and acts for the policy as a tool.
(component
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.1.0" (instance $nothing))
  (export "gavel:plugin/reward@0.1.0" (instance $nothing))
  (export "gavel:plugin/tool@0.1.0" (instance $nothing)))
