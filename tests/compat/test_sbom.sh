#!/bin/bash
# The list of components of this build: JSON of CycloneDX, the same bytes twice, with every library that
# the program is linked with, a version and a licence for each. A build that is none is refused.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
for tool in readelf ldd join python3; do
    command -v "$tool" >/dev/null || { echo "skipped: needs $tool"; exit 77; }
done
if grep -q '^LOCKSTEP_SANITIZE:[A-Z]*=.\+' "$LOCKSTEP_BUILD/CMakeCache.txt"; then
    echo "skipped: a build with sanitizers is not made to be given away"
    exit 77
fi
root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

"$root/tools/sbom.sh" "$LOCKSTEP_BUILD" >"$work/one" || fail "no list"
LC_ALL=C.UTF-8 TZ=Asia/Tokyo "$root/tools/sbom.sh" "$LOCKSTEP_BUILD" >"$work/two"
cmp "$work/one" "$work/two" || fail "two lists of one build differ"
readelf -d "$LOCKSTEP" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' >"$work/needed"
python3 - "$work/one" "$work/needed" <<'PYTHON' || fail "not what it should say"
import json, sys
bom = json.load(open(sys.argv[1]))
assert bom["bomFormat"] == "CycloneDX" and bom["specVersion"] == "1.5"
found = {c["bom-ref"]: c for c in bom["components"]}
assert len(found) == len(bom["components"])
needed = open(sys.argv[2]).read().split()
assert len(needed) > 10
for name in needed:
    component = found[name]
    assert component["version"][0].isdigit(), component
    assert component["licenses"][0]["expression"], component
assert bom["dependencies"] == [{"ref": "lockstep", "dependsOn": sorted(found)}]
PYTHON
mkdir "$work/empty"
echo 'CMAKE_PROJECT_VERSION:STATIC=0.1.0' >"$work/empty/CMakeCache.txt"
! "$root/tools/sbom.sh" "$work/empty" >"$work/log" 2>&1 || fail "a list of nothing"
grep -q 'nothing is built' "$work/log" || fail "$(cat "$work/log")"
echo "components: $(grep -c bom-ref "$work/one")"
