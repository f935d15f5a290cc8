#!/bin/bash
# An installation: a foreign program builds against it with pkg-config, with the shared and the
# static library, and with CMake; only the public functions are exported.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
for tool in cmake ninja pkg-config nm "${CC:-cc}"; do
    command -v "$tool" >/dev/null || { echo "skipped: needs $tool"; exit 77; }
done
if grep -q '^LOCKSTEP_SANITIZE:[A-Z]*=.\+' "$LOCKSTEP_BUILD/CMakeCache.txt"; then
    echo "skipped: a build with sanitizers is not made to be installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

cmake --install "$LOCKSTEP_BUILD" --prefix "$work/first" >"$work/log" || fail "$(cat "$work/log")"
mv "$work/first" "$work/moved" # an installed tree may be moved
pc=$(find "$work/moved" -name lockstep.pc)
[ -n "$pc" ] || fail "no lockstep.pc was installed"
export PKG_CONFIG_PATH=${pc%/*}
libdir=$(pkg-config --variable=libdir lockstep)

# The names of Caffe's programs.
for name in caffe caffe.bin convert_imageset device_query; do
    [ "$(readlink "$work/moved/bin/$name")" = lockstep ] || fail "there is no link $name"
done
for file in man/man1/lockstep.1 man/man1/lockstep-train.1 man/man1/caffe.1 fish/vendor_completions.d/lockstep.fish \
    bash-completion/completions/lockstep zsh/vendor-completions/_lockstep; do
    [ -s "$work/moved/share/$file" ] || fail "$file is not installed"
done
"$work/moved/bin/caffe" -version | grep -q '^caffe version' || fail "caffe -version"

cat >"$work/user.c" <<'C'
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    struct lockstep_error *error = lockstep_error_new();
    struct lockstep_solver *solver = NULL;
    int status = lockstep_solver_load("/no/such/solver.prototxt", NULL, 0, &solver, error);
    printf("%s %d %s\n", lockstep_version(), lockstep_default_workers() >= 1,
           lockstep_error_text(error));
    lockstep_error_free(error);
    return status != LOCKSTEP_OK && solver == NULL ? 0 : 1;
}
C
version=$(pkg-config --modversion lockstep)
expect="^$version 1 .*/no/such/solver.prototxt"
# shellcheck disable=SC2046 # flags are words
"${CC:-cc}" -std=c99 -Wall -Wextra -Werror "$work/user.c" -o "$work/shared" \
    $(pkg-config --cflags --libs lockstep)
LD_LIBRARY_PATH=$libdir "$work/shared" | grep -q "$expect" || fail "with the shared library"
LD_LIBRARY_PATH=$libdir ldd "$work/shared" | grep -q "liblockstep.so.0 => $libdir" ||
    fail "the shared library was not used"
mkdir "$work/static" && cp "$libdir/liblockstep.a" "$work/static"
# shellcheck disable=SC2046
"${CC:-cc}" "$work/user.c" -o "$work/alone" $(pkg-config --cflags lockstep) -L"$work/static" \
    $(pkg-config --static --libs-only-L lockstep | sed "s|-L$libdir||") \
    $(pkg-config --static --libs-only-l --libs-only-other lockstep)
"$work/alone" | grep -q "$expect" || fail "with the static library"

# CMake finds the library where it is told to look, for its version and for none of another soname.
mkdir "$work/foreign"
cat >"$work/foreign/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(foreign C)
find_package(lockstep ${wanted} REQUIRED)
add_executable(foreign ../user.c)
target_link_libraries(foreign PRIVATE lockstep::lockstep)
CMAKE
cmake -G Ninja -S "$work/foreign" -B "$work/foreign/build" -DCMAKE_PREFIX_PATH="$work/moved" -Dwanted="${version%.*}" \
    >"$work/log" 2>&1 && cmake --build "$work/foreign/build" >>"$work/log" 2>&1 || fail "CMake: $(cat "$work/log")"
"$work/foreign/build/foreign" | grep -q "$expect" || fail "with CMake's target"
! cmake -G Ninja -S "$work/foreign" -B "$work/foreign/build" -Dwanted=99.0 >"$work/log" 2>&1 || fail "found as version 99"
grep -q 'requested version "99.0"' "$work/log" || fail "$(cat "$work/log")"

not_public() { sed 's/^lockstep_[a-z_]*$//' | grep -v '^$' || true; }
strangers=$(nm -g --defined-only "$libdir/liblockstep.a" 2>/dev/null | awk 'NF == 3 { print $3 }' |
    not_public)
[ -z "$strangers" ] || fail "not hidden in the static library: $strangers"

# Without the linker's own, which it exports where a library beside ours has them.
exported=$(nm -D --defined-only "$libdir/liblockstep.so" | awk '{ print $3 }' |
    grep -vxE '_edata|_end|__bss_start' | sort)
declared=$(grep -oh '\blockstep_[a-z_]*(' "$work"/moved/include/lockstep/*.h | tr -d '(' |
    sort -u)
strangers=$(comm -13 <(echo "$declared") <(echo "$exported"))
[ -z "$strangers" ] || fail "exported, but not in the header: $strangers"
missing=$(comm -23 <(sed -n 's/.*LOCKSTEP_API[^;(]*[ *]\(lockstep_[a-z_]*\)(.*/\1/p' \
    "$work"/moved/include/lockstep/*.h | sort -u) <(echo "$exported"))
[ -z "$missing" ] || fail "in the header, but not exported: $missing"
# What has been there stays as long as the soname does: the list of tools/abi.py.
soname=$(readelf -d "$libdir/liblockstep.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]$/\1/p')
promised=$(dirname "$0")/abi/$soname
[ -s "$promised" ] || fail "there is no list of the functions of $soname: $promised"
gone=$(comm -23 <(sed -n 's/^function \([a-z_]*\):.*/\1/p' "$promised" | sort) <(echo "$exported"))
[ -z "$gone" ] || fail "no longer exported, which takes another soname: $gone"
if command -v python3 >/dev/null; then
    LOCKSTEP_INCLUDE=$work/moved/include/lockstep python3 -B "$LOCKSTEP_SOURCE/tools/abi.py" "$promised" ||
        fail "the headers do not keep what $soname promises"
fi

if [ -n "$(command -v "${CXX:-c++}" || true)" ]; then
    echo '#include <lockstep/lockstep.h>' >"$work/user.cc"
    # shellcheck disable=SC2046
    "${CXX:-c++}" -Wall -Wextra -Werror -fsyntax-only "$work/user.cc" \
        $(pkg-config --cflags lockstep) || fail "the header in C++"
fi
"$work/moved/bin/lockstep" --version | grep -q "$version" || fail "the installed program"
echo "installed, moved, linked: $(echo "$exported" | wc -l) functions"
