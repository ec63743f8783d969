;; A component without anything in it.
(component)
