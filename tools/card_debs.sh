#!/bin/bash
# Collects Debian's packages that a build needs, for a machine with a card and without a network:
#
#     card_debs.sh FOLDER        then, over there: ./run card --debs FOLDER
#
# The packages are those of `./run build` and what these depend on, without what each Linux has: the C
# library, compilers and their runtimes. `./run card` unpacks them beside the build and installs nothing.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 1 ] || {
    echo "usage: card_debs.sh FOLDER" >&2
    exit 2
}
mkdir -p "$1"
cd "$1"
# The list of ./run, without programs that such a machine has.
packages=$(sed -n '/^build_packages="/,/"$/p' "$root/run" | tr -d '"' | sed 's/^build_packages=//')
read -ra words <<<"$(tr '\n' ' ' <<<"$packages")"
wanted=()
for word in "${words[@]}"; do
    case $word in
    gcc | libc6-dev | cmake | ninja-build | pkg-config) ;;
    *) wanted+=("$word") ;;
    esac
done
all=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
    --no-replaces --no-enhances "${wanted[@]}" | grep '^[a-z0-9]' | sort -u)
for package in $all; do
    case $package in
    libc6* | libc-bin | libc-dev-bin | gcc* | g++* | cpp* | libgcc* | libstdc++* | libgomp* | linux-libc-dev) ;;
    perl* | libperl* | debconf* | dpkg* | tar | coreutils | bash | sed | grep) ;;
    *) apt-get -q download "$package" >/dev/null 2>&1 || echo "card_debs: no package $package" >&2 ;;
    esac
done
du -sh . | cut -f 1
