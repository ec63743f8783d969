#!/bin/sh
# Builds the Python guests of the benchmark `call` to target/bench, with componentize-py and sympy from PyPI. Without
# them, the benchmark measures only the Rust component; nothing else needs them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../../..
out=$root/target/bench
venv=$out/venv
mkdir -p "$out"
[ -x "$venv/bin/componentize-py" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet componentize-py==0.25.1
# Pure Python for the guest, and not for this machine's interpreter.
[ -d "$out/packages/sympy" ] || "$venv/bin/pip" install --quiet --target "$out/packages" sympy==1.14.0
for guest in answer symbolic; do
    (cd "$here" && "$venv/bin/componentize-py" -d "$root/wit" -w reward-plugin \
        componentize "$guest" -p . -p "$out/packages" -o "$out/$guest.wasm")
done
