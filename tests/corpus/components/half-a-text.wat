(component
  (instance $nothing)
