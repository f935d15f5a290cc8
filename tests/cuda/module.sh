#!/bin/bash
# liblockstep_cuda.so was built by nvcc without a warning (a warning is an error there), exports one
# function, has code for the cards that it should, shares no layouts of its own with the program; and the
# program needs nothing of CUDA.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
module=$LOCKSTEP_BUILD/liblockstep_cuda.so
[ -f "$module" ] || { echo "skipped: the module was not built"; exit 77; }
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
exported=$(nm -D --defined-only "$module" | awk '{ print $3 }' | grep -v '^_\(init\|fini\)$' | tr '\n' ' ')
[ "$exported" = "lockstep_device_module " ] || fail "it exports: $exported"
! nm "$LOCKSTEP_BUILD/libls_cuda_host.a" | grep -E ' U ls_layout_(plain|blocked|channels)' ||
    fail "the device has layouts of its own: ir/layout.h, LS_LAYOUTS_OF_PROGRAM"
! grep -nE '[!=]= *&ls_layout_' "$LOCKSTEP_SOURCE"/src/ir/*.c "$LOCKSTEP_SOURCE"/src/device/*.c ||
    fail "what a loaded device has copies of must not compare layouts by their addresses"
for file in "$LOCKSTEP" "$LOCKSTEP_BUILD/liblockstep.so"; do
    [ -e "$file" ] || continue
    ! readelf -d "$file" | grep -iE 'NEEDED.*(cuda|cudnn|cublas|nccl|stdc\+\+)' || fail "$file needs it"
done
! readelf -d "$module" | grep -E 'NEEDED.*(hdf5|dnnl|cudart)' || fail "the module needs that"
dump=$(command -v cuobjdump || echo /usr/local/cuda/bin/cuobjdump)
if [ -x "$dump" ]; then
    code=$("$dump" -lelf -lptx "$module")
    for kind in sm_80.cubin sm_90.cubin sm_90.ptx; do
        grep -q "$kind" <<<"$code" || fail "there is no $kind in it"
    done
fi
echo "the module was built: $(stat -c %s "$module") bytes; it has not run on a card"
