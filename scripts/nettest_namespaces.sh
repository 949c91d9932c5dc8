#!/bin/bash
# Runs `fairlead nettest` between four hosts: two clients and two servers, each in its own network namespace on one bridge.
# First ping of 4 KiB, then bulk of 1 MiB, verified. The namespaces end with this script.
#   scripts/nettest_namespaces.sh [SECONDS [COMMAND]]
set -euo pipefail
seconds=${1:-10}
command=$(realpath "${2:-build/bin/fairlead}")
if [ "${3:-}" != inside ]; then
  as_root=() && [ "$(id -u)" = 0 ] || as_root=(--user --map-root-user)
  exec unshare "${as_root[@]}" --net --mount --pid --fork --kill-child "$0" "$seconds" "$command" inside
fi

mount -t tmpfs none /run
ip link set lo up
ip link add bridge0 type bridge
ip link set bridge0 up
ip address add 10.77.1.254/24 dev bridge0
for host in 1 2 3 4; do
  ip netns add "host$host"
  ip link add "cable$host" type veth peer name eth0 netns "host$host"
  ip link set "cable$host" master bridge0 up
  ip -n "host$host" link set lo up
  ip -n "host$host" address add "10.77.1.$host/24" dev eth0
  ip -n "host$host" link set eth0 up
  ip netns exec "host$host" "$command" nettest agent --address "10.77.1.$host" > "/run/agent$host" &
done
for host in 1 2 3 4; do
  for _ in $(seq 100); do grep -q "agent at" "/run/agent$host" && break || sleep 0.05; done
done
for type in "ping --size 4K" "bulk --size 1M"; do
  # shellcheck disable=SC2086
  "$command" nettest console --clients 10.77.1.1,10.77.1.2 --servers 10.77.1.3,10.77.1.4 --type $type \
    --time "$seconds" --timeout 20 --verify
done
