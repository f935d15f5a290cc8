#!/bin/bash
# The kernels compile with NVIDIA's compiler, for the cards that are named below, without a warning, and
# no two files have a kernel of the same name and parameters: they are not static there, so that the
# module would not link. Skipped where there is no toolkit.
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
        -Xcompiler=-Wall,-Wextra "$file" -o "$folder/$(basename "$file" .cu).o"
    echo "${file##*/}: no warnings"
done
twice=$(nm --defined-only "$folder"/*.o | awk '$2 == "T" || $3 ~ /__device_stub__/ && $2 == "W" { print $3 }' |
    sort | uniq -d)
[ -z "$twice" ] || { echo "FAILED: two files have these functions: $twice" >&2; exit 1; }
