#!/bin/bash
# Checks that no number of a training comes from the C library's transcendental functions, whose
# last bits depend on the machine (glibc has one version for processors with fma and one for those
# without): tools/check_math.sh [ROOT]. SLEEF's deterministic ones take their place; sqrt and the
# like round correctly. What a person only looks at (monitor, report, cli) may use them.
# Prints each offence as file:line and exits 1 if there is any.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
cd "${1:-$(dirname "$0")/..}"

functions='exp|exp2|expm1|exp10|log|log2|log10|log1p|pow|cbrt|hypot|tanh|sinh|cosh|asinh|acosh|atanh'
functions="$functions|sin|cos|tan|sincos|asin|acos|atan|atan2|erf|erfc|tgamma|lgamma"
pattern="(^|[^A-Za-z0-9_.>])($functions)[fl]?\\(" # members (.exp, ->exp) are our own

# Comments and strings are cut away.
if grep -rnE "$pattern" src --include='*.c' --include='*.h' | grep -vE '^src/(monitor|report|cli)/' |
    grep -vE '^[^:]*:[0-9]+: *\* ' | sed -E 's#/\*.*##; s#"[^"]*"##g' | grep -E "$pattern"; then
    echo "use SLEEF's Sleef_cinz_* functions there" >&2
    exit 1
fi
