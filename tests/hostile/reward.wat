;; An honest reward around a core module that is not: the text of an attack's
;; attack.wat takes the place of the line ATTACK. It defines a core instance $attack that
;; exports `score`, and may use the core instance $honest,
;;   memory  one page; 0..4096 is used here, what `realloc` gives starts at 8192
;;   hooks   two functions that the host calls and that the attack may replace:
;;           0 is `realloc`, 1 is what runs after `score` has returned
;;   finish  lets go of the two handles that `score` got
;; and the core instance $host,
;;   response  writes the sample's response as (pointer, length) to an address
;; A verdict that scores 1 lies at 256:
;;   256 result   264 verdict   272 value   280 metrics   288 credit
;;   296 whether there is a note   300 note (pointer, length)
(component
  (import "gavel:plugin/types@0.1.0" (instance $types
    (type $metric' (record (field "name" string) (field "value" float64)))
    (export "metric" (type $metric (eq $metric')))
    (type $credit' (record
      (field "trajectory" u32) (field "message" u32) (field "start" u32) (field "end" u32) (field "value" float64)))
    (export "credit" (type $credit (eq $credit')))
    (type $score' (record
      (field "value" float64) (field "metrics" (list $metric)) (field "credit" (list $credit))
      (field "note" (option string))))
    (export "score" (type $score (eq $score')))
    (type $verdict' (variant (case "scored" $score) (case "abstained" string)))
    (export "verdict" (type (eq $verdict')))
    (type $failure' (variant
      (case "invalid-input" string) (case "unavailable" string) (case "internal" string)))
    (export "failure" (type (eq $failure')))))
  (import "gavel:plugin/samples@0.1.0" (instance $samples
    (export "sample" (type $sample (sub resource)))
    (export "[method]sample.response" (func (param "self" (borrow $sample)) (result string)))))
  (import "gavel:plugin/references@0.1.0" (instance $references
    (export "reference" (type (sub resource)))))
  (alias export $types "verdict" (type $verdict))
  (alias export $types "failure" (type $failure))
  (alias export $samples "sample" (type $sample))
  (alias export $references "reference" (type $reference))

  (core func $drop-sample (canon resource.drop $sample))
  (core func $drop-reference (canon resource.drop $reference))
  (core module $honest
    (import "host" "drop-sample" (func $drop-sample (param i32)))
    (import "host" "drop-reference" (func $drop-reference (param i32)))
    (type $realloc (func (param i32 i32 i32 i32) (result i32)))
    (type $after (func (param i32)))
    (memory (export "memory") 1)
    (table (export "hooks") 2 funcref)
    (elem (i32.const 0) func $bump $nothing)
    (global $free (mut i32) (i32.const 8192))
    (func $bump (type $realloc)
      (local $at i32)
      ;; Aligned to 8, which suits everything.
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func $nothing (type $after))
    (func (export "realloc") (type $realloc)
      (call_indirect (type $realloc)
        (local.get 0) (local.get 1) (local.get 2) (local.get 3) (i32.const 0)))
    (func (export "after") (type $after)
      (call_indirect (type $after) (local.get 0) (i32.const 1)))
    (func (export "init") (param i32 i32) (result i32) (i32.const 16))
    (func (export "finish") (param $sample i32) (param $reference i32)
      (call $drop-sample (local.get $sample))
      (call $drop-reference (local.get $reference)))
    ;; The result of `init` at 16: name at 24, version at 32, not pure, no range.
    (data (i32.const 24) "\c8\00\00\00\06\00\00\00\d0\00\00\00\01\00\00\00")
    (data (i32.const 200) "attack")
    (data (i32.const 208) "1")
    ;; The verdict at 256: a score of 1.0.
    (data (i32.const 278) "\f0\3f"))
  (core instance $honest (instantiate $honest (with "host" (instance
    (export "drop-sample" (func $drop-sample))
    (export "drop-reference" (func $drop-reference))))))
  (alias core export $honest "memory" (core memory $memory))
  (alias core export $honest "realloc" (core func $realloc))
  (alias core export $honest "after" (core func $after))
  (alias core export $honest "init" (core func $init))
  (core func $response (canon lower (func $samples "[method]sample.response")
    (memory $memory) (realloc $realloc)))
  (core instance $host (export "response" (func $response)))

ATTACK

  (type $score-range (record (field "min" float64) (field "max" float64)))
  (type $info (record
    (field "name" string) (field "version" string) (field "pure" bool)
    (field "score-range" (option $score-range))))
  (func $lifecycle-init (param "params-json" string) (result (result $info (error string)))
    (canon lift (core func $init) (memory $memory) (realloc $realloc)))
  (instance $lifecycle
    (export "score-range" (type $score-range))
    (export "info" (type $info))
    (export "init" (func $lifecycle-init)))
  (export "gavel:plugin/lifecycle@0.1.0" (instance $lifecycle))

  (func $reward-score (param "sample" (borrow $sample)) (param "reference" (borrow $reference))
    (result (result $verdict (error $failure)))
    (canon lift (core func $attack "score") (memory $memory) (realloc $realloc) (post-return $after)))
  (instance $reward (export "score" (func $reward-score)))
  (export "gavel:plugin/reward@0.1.0" (instance $reward)))
