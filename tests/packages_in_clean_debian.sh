#!/usr/bin/env bash
# Installs the packages in a bare Debian 12, uses them as docs/packages.md says, and removes them again, as a new user
# would. Fails if a step fails, or if a file of the packages is left. Needs root, debootstrap and a mirror.
#   tests/packages_in_clean_debian.sh PACKAGE.deb...
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# != 0 ] || { echo "usage: $0 PACKAGE.deb..." >&2; exit 1; }

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
echo "installing a bare Debian 12 in $root"
debootstrap --variant=minbase bookworm "$root" >/dev/null
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/packages" "$root/own"
cp "$@" "$root/packages"
cp "$here"/install/{CMakeLists.txt,consumer.cpp} "$root/own"
cat >"$root/first_hour.sh" <<'INSIDE'
set -euxo pipefail
export DEBIAN_FRONTEND=noninteractive
quietly() { "$@" >/tmp/log 2>&1 || { tail -n 20 /tmp/log; false; }; }
installs() { quietly apt-get install --yes --no-install-recommends "$@"; }
list_files() { find / -xdev \( -path /proc -o -path /tmp -o -path /var -o -path /packages -o -path /own \) -prune -o -print | sort; }
quietly apt-get update
installs perftest iproute2 g++ cmake make pkgconf man-db bash-completion
list_files >/tmp/before

# A program's image needs these two packages alone (docs/ci.md).
installs /packages/fairlead_*.deb /packages/fairlead-verbs_*.deb
fairlead --version
fairlead doctor
fairlead explain 12 | grep IBV_WC_RETRY_EXC_ERR
timeout 60 fairlead run -- ib_write_bw -F -n 100 >/tmp/server &
for attempt in {1..50}; do
  ss -ltn | grep -q ':18515 ' && break
  sleep 0.2
done
fairlead top --once | tee /tmp/top
grep -q ib_write_bw /tmp/top
timeout 60 fairlead run -- ib_write_bw -F -n 100 127.0.0.1
wait

# Pages and completion, for each command.
for subcommand in $(fairlead --help | awk '/^Subcommands:/ {on = 1; next} on && /^  [a-z]/ {print $1}'); do
  man --where "fairlead-$subcommand"
done
man --where fairlead fairleadd fairlead-settings fairlead-counters fairlead-words
(set +eu; source /usr/share/bash-completion/bash_completion; _completion_loader fairlead; COMP_WORDS=(fairlead do)
 COMP_CWORD=1; _fairlead; test "${COMPREPLY[*]}" = doctor)

# A program of one's own, found by CMake and by pkg-config.
installs /packages/*.deb
man --where fairlead::verbs::QueuePair fairlead::net::TransferMachine fairlead_net_machine_start AM_Map amudp.h
cmake -S /own -B /tmp/own -D CMAKE_BUILD_TYPE=Release >/dev/null
cmake --build /tmp/own >/dev/null
test "$(/tmp/own/consumer)" = canceled
g++ -std=c++23 /own/consumer.cpp -o /tmp/by_pkg_config $(pkg-config --cflags --libs fairlead)
test "$(/tmp/by_pkg_config)" = canceled
pkg-config --cflags --libs amudp

quietly apt-get purge --yes 'fairlead*' 'libfairlead*' 'libamudp*'
quietly apt-get autoremove --purge --yes
list_files >/tmp/after
! comm -13 /tmp/before /tmp/after | grep -iE 'fairlead|amudp|motr_net'
INSIDE

# Mounts and processes end with the namespaces, whatever happens.
unshare --mount --pid --ipc --fork --kill-child bash -c '
  mount --make-rprivate /
  mount --rbind /dev "$1/dev"
  mount -t tmpfs tmpfs "$1/dev/shm"
  mount -t proc proc "$1/proc"
  mount --rbind /sys "$1/sys"
  exec chroot "$1" /usr/bin/env --ignore-environment --chdir=/ HOME=/root LC_ALL=C.UTF-8 \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin bash /first_hour.sh' inside "$root" </dev/null
echo "installed, used and removed: nothing is left"
