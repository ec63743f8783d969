;; Decides what is learned as an advantage and acts for the policy as a tool.
(component
  (instance $nothing)
  (export "gavel:plugin/lifecycle@0.2.0" (instance $nothing))
  (export "gavel:plugin/advantage@0.2.0" (instance $nothing))
  (export "gavel:plugin/tool@0.2.0" (instance $nothing)))
