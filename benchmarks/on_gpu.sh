#!/usr/bin/env bash
# Everything that needs a GPU, in one go: the GPU half of the tests, then the benchmarks behind NOTES.md.
# benchmarks/on_gpu.sh OUT [FILE ...]     records and reports go to the folder OUT; FILES are matrices and OpenFOAM cases
set -uo pipefail
out=${1:?usage: benchmarks/on_gpu.sh OUT [FILE ...]}
shift
mkdir -p "$out"
python -m pytest -m gpu -n "${WORKERS:-8}" -q 2>&1 | tee "$out/tests.txt"
python benchmarks/product_in_graph.py 2>&1 | tee "$out/products.txt"
for bench in krylov fvm block-gmres; do
    files=()
    [[ $bench != krylov && $# -gt 0 ]] && files=(--files "$@")
    python -m swell bench "$bench" --device cuda --out "$out/$bench.jsonl" --report "$out/$bench.html" \
        "${files[@]}" 2>&1 | tee "$out/$bench.txt"
done
