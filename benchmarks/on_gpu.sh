#!/usr/bin/env bash
# What needs a GPU: the GPU half of the tests, then the benchmarks behind benchmarks/notes, all or some.
#   benchmarks/on_gpu.sh OUT [PART ...] [-- FILE ...]
# Records and reports go to the folder OUT; FILES are matrices and OpenFOAM cases, and
# CABIN, if set, is a folder of K.npz, M.npz and B.npz; sweep needs it. Parts are named below; all by default.
set -uo pipefail
all="tests products resident complex gmres inexact block blas1 tuned table9 krylov fvm block-gmres dense dense-lu bddc bddc50 helmholtz sweep elasticity batches"
out=${1:?usage: benchmarks/on_gpu.sh OUT [PART ...] [-- FILE ...], parts: $all}
shift
parts=() files=()
while (($#)); do
    [[ $1 == -- ]] && { shift; files=(--files "$@"); break; }
    parts+=("$1")
    shift
done
mkdir -p "$out"
script() { python "benchmarks/$2" "${@:3}" 2>&1 | tee "$out/$1.txt"; }
measure() { python -m swell bench "${@:2}" --device cuda --out "$out/$1.jsonl" --report "$out/$1.html" 2>&1 | tee "$out/$1.txt"; }
for part in ${parts[@]:-$all}; do
    case $part in
        tests) python -m pytest -m gpu -n "${WORKERS:-8}" -q tests 2>&1 | tee "$out/tests.txt" ;;
        products) script products product_in_graph.py ;;
        resident) script resident resident_cg.py ;;
        complex) script complex complex_methods.py --device cuda ;;
        gmres) script gmres gmres_on_gpu.py ;;
        inexact) script inexact inexact_on_gpu.py 'atmosmodd~' ;;
        block) script block block_on_gpu.py ;;
        blas1) measure blas1 blas1 --dtypes complex128,float64,complex64,float32 ;;
        tuned) measure tuned spmv --tune ;;
        table9) measure table9 spmv --tune --complex ;;
        krylov) measure krylov krylov ;;
        fvm | block-gmres) measure "$part" "$part" "${files[@]}" ;;
        dense) script dense dense_on_gpu.py ;;
        dense-lu)
            measure dense-lu dense-lu --generated random border --sizes 4156,10135 --types float64 --repeat 3
            measure dense-lu-bordered dense-lu --generated bordered --sizes 178,514,1228,3202 --types float64 --batch 12 --repeat 5 ;;
        bddc)
            measure bddc bddc
            measure bddc-direct bddc --interior direct --elements 25 --decomposers getrf --repeat 1 ;;
        bddc50) measure bddc50 bddc --elements 50 --decomposers getrf --repeat 1 ;;
        helmholtz) measure helmholtz helmholtz ${CABIN:+--files "$CABIN"} ;;
        elasticity) script elasticity elasticity.py --device cuda --launches --choices W2,V2,W3 --repeat 9 plate:500 tets:69 hexes:30 ;;
        batches) script batches batches.py --device cuda --json "$out/batches.json" ;;
        sweep) [[ ${CABIN:-} ]] && script sweep frequency_sweep.py "$CABIN" --device cuda --remember 8 --preconds none jacobi \
            "ilu0(solve='sweeps(count=2)')" "deflation(inner='ilu0(solve=sweeps(count=2))')" ;;
        *) echo "no part $part; there are: $all" >&2; exit 2 ;;
    esac
done
