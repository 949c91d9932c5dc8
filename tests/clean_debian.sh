#!/usr/bin/env bash
# Runs commands of ./dev in a bare Debian 12: a fresh clone of this tree's last commit, in a root made by debootstrap, with
# its own mounts and processes. Prints how long each took. Needs root, debootstrap, a mirror, and 5 GB in TMPDIR.
#   tests/clean_debian.sh [COMMAND...]      default: demo test
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# = 0 ]; then
  set -- demo test
fi

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
echo "installing a bare Debian 12 in $root"
debootstrap --variant=minbase bookworm "$root" >/dev/null
cp /etc/resolv.conf "$root/etc/resolv.conf"
git clone --quiet --no-local "$project" "$root/fairlead"

# Mounts and processes end with the namespaces, whatever happens.
run_inside() {
  unshare --mount --pid --ipc --fork --kill-child bash -c '
    root=$1
    shift
    mount --make-rprivate /
    mount --bind "$root" "$root"  # a mount point, as the root of a machine is: tests make mount namespaces of their own
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    exec chroot "$root" /usr/bin/env --ignore-environment --chdir=/fairlead \
      HOME=/root CI=true PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' inside "$root" "$@" </dev/null
}

for command in "$@"; do
  SECONDS=0
  run_inside ./dev "$command"
  echo "./dev $command: $SECONDS s"
done
