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
quietly apt-get update
quietly apt-get install --yes --no-install-recommends perftest iproute2 g++ cmake make pkgconf man-db
find / -xdev \( -path /proc -o -path /tmp -o -path /var -o -path /packages -o -path /own \) -prune -o -print | sort >/tmp/before

quietly apt-get install --yes --no-install-recommends /packages/*.deb
fairlead --version
fairlead doctor || true                       # a bare root may lack what it looks for; it has to say so
man --where fairlead-run fairlead-settings fairlead::verbs::QueuePair
fairlead explain 12 | head -n 3

timeout 60 fairlead run -- ib_write_bw -F -n 100 >/tmp/server &
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  ss -ltn | grep -q ':18515 ' && break
  sleep 0.2
done
fairlead top --once
timeout 60 fairlead run -- ib_write_bw -F -n 100 127.0.0.1
wait

cmake -S /own -B /tmp/own -D CMAKE_BUILD_TYPE=Release >/dev/null
cmake --build /tmp/own >/dev/null
test "$(/tmp/own/consumer)" = canceled
g++ -std=c++23 /own/consumer.cpp -o /tmp/by_pkg_config $(pkg-config --cflags --libs fairlead)
test "$(/tmp/by_pkg_config)" = canceled
pkg-config --cflags --libs amudp

quietly apt-get purge --yes 'fairlead*' 'libfairlead*' 'libamudp*'
quietly apt-get autoremove --purge --yes
find / -xdev \( -path /proc -o -path /tmp -o -path /var -o -path /packages -o -path /own \) -prune -o -print | sort >/tmp/after
! comm -13 /tmp/before /tmp/after | grep -i fairlead
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
