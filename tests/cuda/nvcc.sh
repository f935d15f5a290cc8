#!/bin/bash
# The kernels compile with NVIDIA's compiler, for the cards that are named below, without a warning.
# Skipped where there is no toolkit.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
    echo "skipped: no nvcc, the compiler of CUDA's toolkit"
    exit 77
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for file in "$root"/src/ops/cuda/kernels/*.cu; do
    # The flags are part of the numbers: no contraction, denormals flushed, divisions and roots rounded
    # rightly.
    "$nvcc" -c -std=c++17 -gencode arch=compute_80,code=sm_80 -I"$root/src" -I"$root/include" \
        -fmad=false -ftz=true -prec-div=true -prec-sqrt=true --Werror all-warnings \
        -Xcompiler=-Wall,-Wextra "$file" -o "$folder/object"
    echo "${file##*/}: no warnings"
done
