#!/bin/bash
# Two hosts on one machine: each is a network namespace with one fairleadd. `bulkping` and `ib_write_bw` run between the two
# daemons. Meanwhile other clients of both kinds are killed. Then both daemons are replaced in turn until the programs have
# ended: they must not notice.
#   scripts/two_hosts.sh [LOOPS [COMMAND]]
# LOOPS is the number of loops of bulkping, and of 100 writes of ib_write_bw. If they end before both daemons were
# replaced, they are repeated with more. The namespaces end with this script, also if it fails, and with them all that it has started.
set -euo pipefail
loops=${1:-300}
command=$(realpath "${2:-build/bin/fairlead}")
daemon=$(dirname "$command")/fairleadd
for program in "$command" "$daemon" ib_write_bw ip; do
  command -v "$program" > /dev/null && continue
  echo "two_hosts: $program is missing: ./dev build; apt install perftest iproute2" >&2
  exit 2
done
if [ "${3:-}" != inside ]; then
  as_root=() && [ "$(id -u)" = 0 ] || as_root=(--user --map-root-user)
  exec unshare "${as_root[@]}" --net --mount --pid --fork --kill-child "$0" "$loops" "$command" inside
fi

mount -t tmpfs none /run
mount -t proc none /proc
ip netns add host1
ip netns add host2
ip link add cable1 netns host1 type veth peer name cable2 netns host2
for host in 1 2; do
  ip -n "host$host" link set lo up
  ip -n "host$host" address add "10.77.2.$host/24" dev "cable$host"
  ip -n "host$host" link set "cable$host" up
done

# on HOST COMMAND...: runs a program on this host, attached to its daemon.
on() {
  FAIRLEAD_CORE=host FAIRLEAD_HOST=/run/daemon$1 exec ip netns exec "host$1" "${@:2}"
}

# fail TEXT: ends with the text, and what all programs have printed.
fail() {
  echo "two_hosts: $1" >&2
  tail -n 40 /run/*.log >&2
  exit 1
}

# wait_until CONDITION...: waits for the condition, at most 20 seconds.
wait_until() {
  for _ in $(seq 400); do
    if "$@"; then return; fi
    sleep 0.05
  done
  fail "after 20 seconds still not: $*"
}
says() { grep -qs "$2" "/run/$1.log"; }
# is_attached HOST PROCESS: the daemon lists it.
is_attached() { [[ " $("$command" ps --host "/run/daemon$1" 2> /dev/null | awk '{ print $1 }' | tr '\n' ' ')" = *" $2 "* ]]; }
has_pairs() { [ "$("$command" ps --host "/run/daemon$1" 2> /dev/null | awk -v process="$2" '$1 == process { print $11 }')" = 1 ]; }
# begins CONDITION HOST PROCESS: the condition holds, or the process has ended already.
begins() { "$@" || ! kill -0 "$3" 2> /dev/null; }
has_left() { ! is_attached "$@"; }
listens() { [ -n "$(ip netns exec host2 ss --listening --tcp --no-header "sport = :$1")" ]; }

echo "== a daemon in each of two network namespaces"
for host in 1 2; do
  (on "$host" "$daemon" --socket "/run/daemon$host") > "/run/daemon$host.log" 2>&1 &
  wait_until says "daemon$host" "listens at"
  head -n 1 "/run/daemon$host.log"
done

for portal in 31 32; do
  (on 2 "$command" bulkping server --address "10.77.2.2@udp:20480:$portal:12") > "/run/bulkping-server$portal.log" 2>&1 &
  wait_until says "bulkping-server$portal" "serving at"
done

# ping PORTAL LOOPS: starts a client of the bulkping server at this portal. Sets `started`.
ping() {
  (on 1 "$command" bulkping client --server "10.77.2.2@udp:20480:$1:12" --bulk-size 64K --loops "$2") > "/run/bulkping$1.log" 2>&1 &
  started=$!
  wait_until begins is_attached 1 "$started"
}

# write PORT WRITES: starts a server and a client of ib_write_bw. Sets `started`.
write() {
  (on 2 "$command" run --host -- ib_write_bw -p "$1" -n "$2") > "/run/ib_write_bw-server$1.log" 2>&1 &
  wait_until listens "$1"
  (on 1 "$command" run --host -- ib_write_bw -p "$1" -n "$2" 10.77.2.2) > "/run/ib_write_bw$1.log" 2>&1 &
  started=$!
  wait_until begins has_pairs 1 "$started"
}

# disturb PROCESS PROCESS: replaces the daemons in turn until one of these programs has ended.
disturb() {
  replacements=0
  while kill -0 "$1" 2> /dev/null && kill -0 "$2" 2> /dev/null; do
    # On a busy host it may refuse, and say why. Then the old one goes on.
    if "$daemon" --replace --socket "/run/daemon$((replacements % 2 + 1))"; then replacements=$((replacements + 1)); fi
    sleep 0.3
  done
}

# A fast host needs more loops: the programs must last for a replacement of each daemon.
for attempt in $(seq 6); do
  echo "== bulkping ($loops loops) and ib_write_bw ($((loops * 100)) writes) from host 1 to host 2, and a second client of each"
  killed=()
  ping 32 1000000
  killed+=("$started")
  write $((18600 + attempt)) 10000000
  killed+=("$started")
  ping 31 "$loops"
  pinging=$started
  write $((18500 + attempt)) $((loops * 100))
  writing=$started
  "$command" ps --host /run/daemon1
  echo "== the second clients are killed: their daemon keeps nothing of them"
  for one in "${killed[@]}"; do
    kill -KILL "$one"
    wait "$one" 2> /dev/null || true
    wait_until has_left 1 "$one"
  done
  "$command" ps --host /run/daemon1
  echo "== the daemons are replaced in turn until one of the first clients has ended"
  disturb "$pinging" "$writing"
  wait "$pinging" || fail "bulkping has failed"
  wait "$writing" || fail "ib_write_bw has failed"
  if [ "$replacements" -ge 2 ]; then break; fi
  echo "== they ended before both daemons were replaced: again, with more loops"
  loops=$((loops * 4))
done
[ "$replacements" -ge 2 ] || fail "the programs ended before both daemons were replaced: name more LOOPS than $loops"

echo "== $replacements replacements, and no program has noticed"
grep -h "verified" /run/bulkping31.log
grep -h -A 1 "#bytes" "/run/ib_write_bw$((18500 + attempt)).log"
