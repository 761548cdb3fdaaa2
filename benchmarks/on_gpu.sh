#!/usr/bin/env bash
# Everything that needs a GPU, in one go: the GPU half of the tests, then the benchmarks behind NOTES.md.
# benchmarks/on_gpu.sh OUT [FILE ...]     records and reports go to the folder OUT; FILES are matrices and OpenFOAM cases
set -uo pipefail
out=${1:?usage: benchmarks/on_gpu.sh OUT [FILE ...]}
shift
mkdir -p "$out"
python -m pytest -m gpu -n "${WORKERS:-8}" -q 2>&1 | tee "$out/tests.txt"
python benchmarks/product_in_graph.py 2>&1 | tee "$out/products.txt"
python benchmarks/complex_methods.py --device cuda 2>&1 | tee "$out/complex_methods.txt"
measure() { python -m swell bench "${@:2}" --device cuda --out "$out/$1.jsonl" --report "$out/$1.html" 2>&1 | tee "$out/$1.txt"; }
measure blas1 blas1 --dtypes complex128,float64,complex64,float32
measure tuned spmv --tune
measure table9 spmv --tune --complex
for bench in krylov fvm block-gmres; do
    files=()
    [[ $bench != krylov && $# -gt 0 ]] && files=(--files "$@")
    python -m swell bench "$bench" --device cuda --out "$out/$bench.jsonl" --report "$out/$bench.html" \
        "${files[@]}" 2>&1 | tee "$out/$bench.txt"
done
