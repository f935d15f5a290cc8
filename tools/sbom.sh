#!/bin/bash
# What a build is made of, as CycloneDX 1.5 in JSON, to stdout: sbom.sh BUILD. Components are the
# libraries that program, library and modules for MPI are linked with, with their versions and licences.
# Each is told by the package that its file is of, in a Debian; elsewhere by the version in its file's
# name. The same build on the same system gives the same bytes: neither a time nor a random number is in it.
#
# A library without a line below is an error: its licence must be looked up.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
export LC_ALL=C
build=${1:?a build folder}

# Name of the library without version, what it is called, its licence as an expression of SPDX, what for.
known='
ld-linux-x86-64|GNU C Library|LGPL-2.1-or-later|loads libraries
libc|GNU C Library|LGPL-2.1-or-later|functions of C
libm|GNU C Library|LGPL-2.1-or-later|functions of C
libdnnl|oneDNN|Apache-2.0|matrix products and convolutions
libgomp|GNU OpenMP runtime|GPL-3.0-or-later WITH GCC-exception-3.1|threads of oneDNN, which is told to use one
libhdf5|HDF5|HDF5|data and weights in HDF5
libhdf5_serial|HDF5|HDF5|data and weights in HDF5
libjpeg|libjpeg-turbo|IJG AND BSD-3-Clause AND Zlib|pictures in JPEG
liblmdb|LMDB|OLDAP-2.8|data in LMDB
libmpi|Open MPI|BSD-3-Clause-Open-MPI|messages between ranks
libmpich|MPICH|mpich2|messages between ranks
libpcre2-8|PCRE2|BSD-3-Clause WITH PCRE2-exception|regular expressions of tokenizers
libpng16|libpng|libpng-2.0|pictures in PNG
libprotobuf-c|protobuf-c|BSD-2-Clause|definitions and weights of Caffe
libsleef|SLEEF|BSL-1.0|vector functions
libutf8proc|utf8proc|MIT AND Unicode-DFS-2015|properties of characters
libz|zlib|Zlib|compressed data
'

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
files=()
for file in lockstep "liblockstep.so.$version" liblockstep_openmpi.so liblockstep_mpich.so liblockstep_mpi.so; do
    [ ! -e "$build/$file" ] || files+=("$build/$file")
done
[ ${#files[@]} != 0 ] || { echo "sbom: nothing is built in $build" >&2; exit 1; }

escape() { printf '%s' "$1" | sed 's/[\\"]/\\&/g'; }
encode() { printf '%s' "$1" | sed 's/%/%25/g; s/:/%3A/g; s/+/%2B/g'; }

# "SONAME PATH", a line for each library that the files themselves name.
needed() {
    local file
    for file in "${files[@]}"; do
        readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | sort >"$work/names"
        ldd "$file" | awk '$2 == "=>" { print $1, $3; next } $1 ~ /^\// { n = split($1, part, "/"); print part[n], $1 }' |
            sort | join "$work/names" -
    done | sort -u
}

# The package of a file as "NAME VERSION ARCHITECTURE"; nothing where there is none.
package_of() {
    local owner
    command -v dpkg-query >/dev/null || return 0
    owner=$(dpkg-query -S "$(realpath "$1")" 2>/dev/null || dpkg-query -S "$1" 2>/dev/null) || return 0
    dpkg-query -W -f '${Package} ${Version} ${Architecture}\n' "${owner%%: *}" | sed -n 1p
}

component() {
    local soname=$1 path=$2 base name licence purpose package="" number architecture purl="" line
    base=${soname%%.so*}
    line=$(grep "^$base|" <<<"$known") || {
        echo "sbom: no licence is known of $soname; tools/sbom.sh has the table" >&2
        return 1
    }
    IFS='|' read -r _ name licence purpose <<<"$line"
    read -r package number architecture <<<"$(package_of "$path")" || true
    if [ -n "$package" ]; then
        purl="pkg:deb/debian/$package@$(encode "$number")?arch=$architecture"
    else
        number=$(basename "$(realpath "$path")")
        number=${number##*.so}
        number=${number#.}
    fi
    printf '    {"type": "library", "bom-ref": "%s", "name": "%s", "version": "%s",\n' "$(escape "$soname")" \
        "$name" "$(escape "${number:-unknown}")"
    printf '     "description": "%s", "scope": "required",\n' "$purpose"
    printf '     "licenses": [{"expression": "%s"}],%s\n' "$licence" "${purl:+ \"purl\": \"$(escape "$purl")\",}"
    printf '     "properties": [{"name": "soname", "value": "%s"}]}' "$(escape "$soname")"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
needed >"$work/needed"
cut -d ' ' -f 1 "$work/needed" >"$work/found"
for file in "${files[@]}"; do readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'; done | sort -u >"$work/all"
missing=$(comm -13 "$work/found" "$work/all" | tr '\n' ' ')
[ -z "$missing" ] || { echo "sbom: these libraries were not found: $missing" >&2; exit 1; }

cat <<TEXT
{
  "\$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
  "bomFormat": "CycloneDX",
  "specVersion": "1.5",
  "version": 1,
  "metadata": {
    "component": {"type": "application", "bom-ref": "lockstep", "name": "lockstep", "version": "$version",
     "licenses": [{"expression": "BSD-2-Clause"}]}
  },
  "components": [
TEXT
first=1
while read -r soname path; do
    [ -n "$first" ] || printf ',\n'
    first=""
    component "$soname" "$path"
done <"$work/needed"
printf '\n  ],\n  "dependencies": [\n    {"ref": "lockstep", "dependsOn": ['
sed 's/.*/"&"/' "$work/found" | paste -sd ',' | tr -d '\n' | sed 's/,/, /g'
printf ']}\n  ]\n}\n'
