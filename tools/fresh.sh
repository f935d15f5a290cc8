#!/bin/bash
# The README's two commands on a fresh machine: a bare Debian 12 (the base system only) is made in a
# temporary folder, and there `./run demo` and `./run test` run as root, who lacks all packages, and
# then, in a copy of their own, as an ordinary user.
#
#     fresh.sh [--quick] [--keep]
#     fresh.sh --packages FOLDER [--keep]
#
# --quick: a tenth of the demo's training, and for the user, who gets root's checkout with what was
# built in it, of the tests those that depend on who runs them. --keep: the folder stays.
# --packages: instead, the .deb files of FOLDER are installed there and tried (tools/package_check.sh).
# Data sets come from $LOCKSTEP_DATA, else from ../shared/data; packages from where this machine has
# them from, if it is a Debian 12, else from debootstrap's own mirror.
#
# The last line is the count of root's tests; what failed as the user is added to "failed". Ends
# with 77 where no bare system can be made, and says why. Mounts and processes have namespaces of
# their own, so that nothing of them is left when this ends, however it does.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
self=$(realpath "$0")
source=$(realpath "$(dirname "$self")/..")
release=bookworm
# What rights, signals, terminals and processes mean to a test depends on the user.
users_tests='^(cli_.*|faults_(data|files|prefixes|signals|snapshots|usage)|mpi_(cut_link|transport|log)'
users_tests="$users_tests|compat_test_(demo|install))\$"

step() { printf '\n== %s\n' "$*"; }
impossible() {
    printf 'fresh: a bare Debian cannot be made here: %s\n' "$*" >&2
    exit 77
}

# The mirror of this machine's own sources, if it has the release's; else nothing.
mirror() {
    command -v apt-get >/dev/null || return 0
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --no-release-info --format '$(SITE) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 2>/dev/null |
        awk -v release="$release" '$2 == release && $3 == "main" && !found { print $1; found = 1 }'
}

# ---- In the namespaces ------------------------------------------------------------------------

# inside USER COMMAND...: in the bare system, in the checkout if there is one, with nothing of this
# machine's environment but what the network needs.
inside() {
    local user=$1 home=/root name kept=()
    shift
    [ "$user" = root ] || home=/home/$user
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY CI; do
        [ -z "${!name:-}" ] || kept+=("$name=${!name}")
    done
    # shellcheck disable=SC2016 # the inner shell's
    env -i HOME="$home" USER="$user" LOGNAME="$user" ${kept[@]+"${kept[@]}"} \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        chroot "$root" setpriv --reuid "$user" --regid "$user" --init-groups \
        bash -c 'cd "$0/lockstep" 2>/dev/null || cd; exec "$@"' "$place" "$@"
}

# The base system, with what a machine has that runs, and this machine's way to packages.
make_system() {
    local file
    step "A bare Debian ($release) in $root"
    # shellcheck disable=SC2046 # no word where there is no mirror
    debootstrap --variant=minbase "$release" "$root" $(mirror) >"$folder/log" 2>&1 ||
        impossible "debootstrap: $(tail -n 1 "$folder/log")"
    ! command -v apt-config >/dev/null || apt-config dump Acquire >"$root/etc/apt/apt.conf.d/10acquire"
    for file in /etc/resolv.conf /etc/hosts; do
        [ ! -e "$file" ] || cat "$file" >"$root$file"
    done
    # Its / is a mount then, without which no namespace can be made in it.
    mount --bind "$root" "$root" || impossible "no mounts"
    mount -t proc proc "$root/proc" || impossible "no /proc"
    mount --rbind /sys "$root/sys" || true
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts" || true
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" || impossible "no /dev/shm"
    mount -t tmpfs -o mode=0755 tmpfs "$root/run" || impossible "no /run"
    inside root true || impossible "no chroot"
    inside root apt-get -q update >"$folder/log" 2>&1 </dev/null ||
        impossible "apt-get update: $(tail -n 1 "$folder/log")"
}

# checkout USER: the tree without what was built in it, and the data beside it, in $place.
checkout() {
    local file data=${LOCKSTEP_DATA:-$source/../shared/data}
    inside "$1" mkdir -p "$place/lockstep" "$place/shared/data"
    if command -v git >/dev/null && git -C "$source" rev-parse --git-dir >/dev/null 2>&1; then
        git -C "$source" ls-files -z --cached --others --exclude-standard --deduplicate |
            while IFS= read -r -d '' file; do
                [ ! -e "$source/$file" ] || printf '%s\0' "$file" # not what was removed
            done | tar -C "$source" -c --null -T -
    else
        tar -C "$source" -c --exclude='./build*' --exclude=./results --exclude=./.git .
    fi | inside "$1" tar -x -f -
    [ -d "$data" ] || return 0
    mount --bind "$(realpath "$data")" "$root$place/shared/data"
    mount -o remount,bind,ro "$root$place/shared/data"
}

# try USER TEST-OPTIONS...: both commands; the count of tests is left in `count`.
try() {
    local user=$1 status=0 begun=$SECONDS
    shift
    step "${demo[*]}, as $user"
    if ! inside "$user" "${demo[@]}" </dev/null; then
        count="0 passed, 1 failed, 0 skipped"
        return
    fi
    step "./run test $*, as $user"
    inside "$user" ./run test "$@" </dev/null 2>&1 | tee "$folder/log" || status=$?
    count=$(tail -n 1 "$folder/log" | grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$') ||
        count="0 passed, 1 failed, 0 skipped"
    [ $status = 0 ] || [ "${count#* passed, 0 failed}" = "$count" ] ||
        count=${count/ 0 failed/ 1 failed} # of none that was counted
    step "As $user: $count, in $((SECONDS - begun)) s"
}

try_packages() {
    local place=/srv/packages # what runs there, beside what it runs on
    mkdir -p "$root$place"
    cp "$packages"/*.deb "$source/tools/package_check.sh" "$root$place"
    inside root "$place/package_check.sh" "$place"
}

in_namespaces() {
    local options=() passed failed skipped more
    if [ -n "$packages" ]; then
        root=$folder/root place=/srv
        make_system
        try_packages
        return
    fi
    demo=(./run demo)
    [ -z "$quick" ] || demo=(env LOCKSTEP_DEMO_UPDATES=600 ./run demo)
    root=$folder/root
    place=/srv # where the checkout is
    make_system
    checkout root
    try root
    read -r passed _ failed _ skipped _ <<<"$count"
    inside root useradd --create-home --shell /bin/bash ordinary
    if [ -n "$quick" ]; then
        inside root chown -R ordinary: .
        options=(release -R "$users_tests")
    else
        place=/home/ordinary
        checkout ordinary
    fi
    try ordinary ${options[@]+"${options[@]}"}
    read -r _ _ more _ <<<"$count"
    failed=$((failed + more))
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}

# ---- Outside ------------------------------------------------------------------------------------

quick="" keep="" packages=""
if [ "${1:-}" = --in-namespaces ]; then
    folder=$2 quick=$3 packages=$4
    in_namespaces
    exit
fi
while [ $# != 0 ]; do
    case $1 in
    --quick) quick=1 ;;
    --keep) keep=1 ;;
    --packages)
        packages=$(realpath "${2:-}") && compgen -G "$packages/*.deb" >/dev/null || {
            printf 'fresh: --packages wants a folder with .deb files\n' >&2
            exit 2
        }
        shift
        ;;
    *)
        printf 'fresh: no option %s; there are --quick, --keep and --packages\n' "$1" >&2
        exit 2
        ;;
    esac
    shift
done
[ "$(id -u)" = 0 ] || impossible "it takes root"
command -v debootstrap >/dev/null || impossible "the package debootstrap is missing"
unshare --mount --pid --fork --mount-proc true 2>/dev/null || impossible "no namespaces"
folder=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-fresh.XXXXXX")
chmod 755 "$folder"
inner=""
# shellcheck disable=SC2317 # by the trap
clean_up() {
    trap '' INT TERM HUP
    [ -z "$inner" ] || kill -KILL "$inner" 2>/dev/null || true # and so all that it started
    [ -z "$inner" ] || wait "$inner" 2>/dev/null || true
    if [ -n "$keep" ]; then
        echo "fresh: $folder is kept" >&2
    else
        rm -rf --one-file-system "$folder"
    fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
free=$(df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1048576) }')
[ "$free" -ge 5 ] || impossible "$folder has $free GiB of space, and 5 are needed"
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc \
    "$self" --in-namespaces "$folder" "$quick" "$packages" &
inner=$!
status=0
wait "$inner" || status=$?
inner=""
exit "$status"
