#!/bin/bash
# Two real ranks, one of which has other data: one record in the middle, a mean file, a list,
# class names. The difference is found before the first update, with the rank and the kind of
# data.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1

mkdir good poor
cat >in_folder <<'TEXT'
[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}" = 1 ] && cd poor || cd good
exec "$@"
TEXT
small_solver 'snapshot_after_train: false' | sed 's/max_iter: 20/max_iter: 2/' >solver.prototxt

# data STATUS [TEXT...]: two ranks, each in its folder, with net.prototxt.
data() {
    local wanted=$1
    shift
    cp net.prototxt solver.prototxt good
    cp net.prototxt solver.prototxt poor
    expect "$wanted" "$@" -- "mpirun.${kinds[0]}" -n 2 bash in_folder "$LOCKSTEP" train --overwrite \
        --solver solver.prototxt --workers 1 --timeout 60
}
different=('other data than on rank 0 ' 'rank 1, host ' '!Optimization Done')

# One pixel of one record.
idx_images 60 12 >good/images
idx_labels 60 >good/labels
cp good/* poor
small_net 'backend: IDX source: "images" label_source: "labels"' >net.prototxt
data 0 'Optimization Done'
byte 99 | poke poor/images $((16 + 31 * 144 + 70))
data 8 "${different[@]}"
cp good/images poor
byte 7 | poke poor/labels $((8 + 31))
data 8 "${different[@]}"
cp good/labels poor

# A mean file.
sed -i 's/scale: 0.00390625/& mean_file: "mean.binaryproto"/' net.prototxt
"$LOCKSTEP" mean --backend IDX --source good/images --label-source good/labels good/mean.binaryproto >log 2>&1 ||
    fail "no mean: $(cat log)"
cp good/mean.binaryproto poor
data 0 'Optimization Done'
byte 1 | poke poor/mean.binaryproto $(($(stat -c %s good/mean.binaryproto) / 2))
data 8 "${different[@]}"

# A list of pictures, and another label in it.
for folder in good poor; do
    for i in 0 1 2 3 4 5 6 7; do
        grey 12 12 $((20 * i)) >$folder/$i.png
        echo "$i.png $((i % 2))"
    done >$folder/list
done
small_net 'backend: IMAGES source: "list" is_color: false' >net.prototxt
data 0 'Optimization Done'
sed -i 's/^4.png 0/4.png 1/' poor/list
data 8 "${different[@]}"

# Folders are classes: the same pictures under another name.
for folder in good poor; do
    rm -f $folder/list
    mkdir -p $folder/pictures/cat $folder/pictures/dog
    mv $folder/[0-3].png $folder/pictures/cat
    mv $folder/[4-7].png $folder/pictures/dog
done
small_net 'backend: IMAGES source: "pictures" is_color: false' >net.prototxt
data 0 'Optimization Done'
mv poor/pictures/dog poor/pictures/dogs
data 8 "${different[@]}"
finish
