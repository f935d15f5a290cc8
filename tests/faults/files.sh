#!/bin/bash
# Files that are missing, are folders, or may not be read are reported by name before the first
# iteration; and folders that may not be written to.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
mkdir folder
mkfifo pipe
ln -s loop loop
idx_images 40 12 >images
idx_labels 40 >labels
cifar_records 20 >cifar

# data FIELDS TEXT: the training must fail for its data.
data() {
    small_net "$1" >net.prototxt
    train 4 "$2" '!Iteration'
}

# Each kind of file that the program reads, in the place of another. `why` is what must be said.
for file in none none/none folder folder/none pipe loop /dev/null /dev/zero /dev/full; do
    case $file in
    none* | folder/none) why='No such file|there is no file' ;;
    folder) why='is a directory' ;;
    pipe) why='is a pipe' ;;
    loop) why='symbolic links|there is no file' ;;
    *) why='is not a file' ;;
    esac
    expect 3 "^lockstep: $file: .*($why)" '!Iteration' -- "$LOCKSTEP" train --overwrite --solver "$file"
    train 3 "^lockstep: .*$file.*($why)" '!Iteration' -- --set "net=\"$file\""
    # What is not there is said at its place in the definition, what is wrong with a file is the file's.
    named="^lockstep: (net.prototxt:5:[0-9]+: .*'$file'|$file: .*($why))"
    data "backend: IDX source: '$file' label_source: 'labels'" "$named"
    data "backend: IDX source: 'images' label_source: '$file'" "$named"
    data "backend: CIFAR source: 'cifar' source: '$file'" "$named"
    [ "$file" = folder ] || data "backend: IMAGES source: '$file'" "^lockstep: (net.prototxt:5:[0-9]+: .*'$file'|$file)"
    data "backend: LMDB source: '$file'" "^lockstep: (net.prototxt:5:[0-9]+: .*'$file'|$file)"
    small_net | sed "s|scale: 0.00390625|mean_file: '$file'|" >net.prototxt
    train 4 "^lockstep: .*$file.*($why)" '!Iteration'
    small_net >net.prototxt
    train 5 "^lockstep: $file: .*($why)" '!Iteration' -- --weights "$file"
    train 5 "^lockstep: $file: .*($why)" '!Iteration' -- --resume "$file"
    expect 5 "^lockstep: $file: .*($why)" -- "$LOCKSTEP" test --model net.prototxt --weights "$file"
    expect 3 "^lockstep: $file: .*($why)" -- "$LOCKSTEP" test --model "$file" --weights labels
    expect 4 "$file" -- "$LOCKSTEP" mean --backend CIFAR --source "$file" mean.binaryproto
    expect 4 "$file" -- "$LOCKSTEP" convert --backend CIFAR --source "$file" database
    [ ! -e database ] && [ ! -e mean.binaryproto ] || fail "half an output for $file"
done
data "backend: IMAGES source: 'folder'" "^lockstep: folder: "
train 3 "^lockstep: --set net=\"\": there is no file ''" -- --set 'net=""'
small_net "backend: CIFAR source: ''" >net.prototxt
train 3 "^lockstep: net.prototxt:5:[0-9]+: layer 'd': source is empty"
small_net "backend: CIFAR" >net.prototxt
train 3 "^lockstep: net.prototxt:5:[0-9]+: .*d.*source"
small_net >net.prototxt

# Without the right to read. (Nothing is forbidden to root.)
touch secret
chmod 000 secret
as_other=()
if [ "$(id -u)" = 0 ]; then
    as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    "${as_other[@]}" "$LOCKSTEP" --version >/dev/null 2>&1 || as_other=(none)
fi
if [ "${as_other[0]:-}" != none ]; then
    mkdir mine theirs
    chmod 777 mine
    chmod 555 theirs
    other_user() {
        local wanted=$1 text=$2
        shift 2
        expect "$wanted" "$text" '!Iteration' -- ${as_other[@]+"${as_other[@]}"} "$LOCKSTEP" "$@"
    }
    run=(train --overwrite --solver solver.prototxt --workers 1)
    other_user 3 'secret: cannot open: Permission denied' train --solver secret
    other_user 3 'secret: cannot open: Permission denied' "${run[@]}" --set net=secret
    other_user 5 'secret: cannot open: Permission denied' "${run[@]}" --snapshot-prefix mine/s \
        --weights secret
    other_user 5 'secret: cannot open: Permission denied' "${run[@]}" --snapshot-prefix mine/s \
        --resume secret
    other_user 7 'theirs/s: cannot create: Permission denied.*hint: choose a folder' "${run[@]}" \
        --snapshot-prefix theirs/s
    other_user 7 'theirs/log: cannot write: Permission denied' "${run[@]}" \
        --log-json theirs/log
    small_net "backend: CIFAR source: 'secret'" >net.prototxt
    other_user 4 'secret: cannot open: Permission denied' "${run[@]}" --snapshot-prefix mine/s
    other_user 7 theirs convert --backend IDX --source images --label_source labels \
        theirs/database
    other_user 7 'theirs' mean --backend CIFAR --source cifar theirs/mean
    small_net >net.prototxt
fi

# Links that others may have laid: what they lead to stays as it is.
mkdir shared
echo precious >victim
# laid NAME CODE COMMAND...: the command meets a symbolic link, then a hard link, in the place of shared/NAME.
laid() {
    local name=shared/$1 code=$2 kind
    shift 2
    for kind in -s ''; do
        ln $kind "$PWD/victim" "$name"
        expect "$code" -- "$@"
        grep -qx precious victim || fail "$name, a link ($kind), was followed by: $*"
        rm -f "$name"
    done
}
run=("$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 1 --snapshot-prefix shared/s)
laid .s.lock 7 "${run[@]}"
laid s_iter_20.safetensors 0 "${run[@]}"
laid status.json 0 "${run[@]}" --log-json shared/log
laid m.prom 0 "${run[@]}" --metrics shared/m.prom
laid report.html 2 "${run[@]}" --report shared
laid log.json 4 "${run[@]}" --report shared
laid net.svg 0 "$LOCKSTEP" draw --model net.prototxt -o shared/net.svg
laid lockstep.1 0 "$LOCKSTEP" help --man-pages shared
laid mean 0 "$LOCKSTEP" mean --backend CIFAR --source cifar shared/mean
laid database 2 "$LOCKSTEP" convert --backend CIFAR --source cifar shared/database

# Where snapshots cannot go is known before the first iteration, and before any file is touched.
train 7 'none/s: cannot create: No such file or directory. hint: make the folder first: mkdir' \
    '!Iteration' -- --snapshot-prefix none/s
train 7 'labels/s: cannot create: Not a directory' '!Iteration' -- --snapshot-prefix labels/s
train 7 'cannot create: File name too long' '!Iteration' -- \
    --snapshot-prefix "$(head -c 5000 /dev/zero | tr '\0' x)"
train 7 '/proc/s: cannot create: ' '!Iteration' -- --snapshot-prefix /proc/s
# A folder gets the solver's name.
train 0 'Snapshotting to folder/solver_iter_20' -- --snapshot-prefix folder
[ -s folder/solver_iter_20.safetensors ] || fail "there is no snapshot in the folder"
# A folder of the name that the snapshot should have.
mkdir s_iter_20.safetensors
train 7 's_iter_20.safetensors: cannot create: names a directory'
finish
