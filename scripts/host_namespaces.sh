#!/bin/bash
# A cluster of hosts on one machine: each is a network namespace with one fairleadd and four applications that attach to
# it (agents of `fairlead nettest`). All applications exchange messages, each daemon drops some of its datagrams, and
# every byte is verified. Then the daemons are replaced in turn under traffic, REPLACEMENTS times (100). Then, at the same
# time, up to three daemons are replaced and the last two killed under traffic: only the applications of the killed ones
# fail, and after their restart all work again.
#   scripts/host_namespaces.sh [HOSTS [SECONDS [LOSS% [COMMAND]]]]
# REPLACEMENTS=0 leaves out that part and most sizes. The namespaces end with this script.
set -euo pipefail
hosts=${1:-8}
seconds=${2:-5}
loss=${3:-1}
command=$(realpath "${4:-build/bin/fairlead}")
daemon=$(dirname "$command")/fairleadd
replacements=${REPLACEMENTS:-100}
if [ "${5:-}" != inside ]; then
  as_root=() && [ "$(id -u)" = 0 ] || as_root=(--user --map-root-user)
  exec unshare "${as_root[@]}" --net --mount --pid --fork --kill-child "$0" "$hosts" "$seconds" "$loss" "$command" inside
fi

portals=(31 32 33 34) # one for each application of a host
mount -t tmpfs none /run
ip link set lo up
ip link add bridge0 type bridge
ip link set bridge0 up
ip address add 10.77.1.254/24 dev bridge0

# wait_for FILE TEXT: waits until the file contains the text, at most ten seconds.
wait_for() {
  for _ in $(seq 200); do
    if grep -qs "$2" "$1"; then return; fi
    sleep 0.05
  done
  echo "$1 does not say: $2" >&2
  cat "$1" >&2
  exit 1
}

# start HOST: starts its daemon and its applications.
start() {
  local host=$1
  FAIRLEAD_PATH=udp FAIRLEAD_FAULT="drop=$loss%" ip netns exec "host$host" "$daemon" --socket "/run/host$host" 2> "/run/daemon$host" &
  echo $! > "/run/pid$host"
  wait_for "/run/daemon$host" "listens at"
  for portal in "${portals[@]}"; do
    FAIRLEAD_CORE=host FAIRLEAD_HOST=/run/host$host ip netns exec "host$host" "$command" nettest agent \
      --address "10.77.1.$host@udp:20480:$portal:13" > "/run/agent$host-$portal" 2>&1 &
  done
  for portal in "${portals[@]}"; do wait_for "/run/agent$host-$portal" "agent at"; done
}

# agents PORTAL...: lists the agents with these portals of all hosts.
agents() {
  local all=()
  for host in $(seq "$hosts"); do
    for portal in "$@"; do all+=("10.77.1.$host@udp:20480:$portal:13"); done
  done
  (IFS=, && echo "${all[*]}")
}

# talk OPTIONS...: runs traffic: half of the applications of all hosts are clients of the other half.
talk() {
  "$command" nettest console -q --clients "$(agents 31 32)" --servers "$(agents 33 34)" --concurrency 2 \
    --timeout 20 --verify "$@"
}

for host in $(seq "$hosts"); do
  ip netns add "host$host"
  ip link add "cable$host" type veth peer name eth0 netns "host$host"
  ip link set "cable$host" master bridge0 up
  ip -n "host$host" link set lo up
  ip -n "host$host" address add "10.77.1.$host/24" dev eth0
  ip -n "host$host" link set eth0 up
  start "$host"
done

sizes=("ping --size 64" "ping --size 4K" "bulk --size 64K" "bulk --size 1M")
if [ "$replacements" = 0 ]; then sizes=("ping --size 4K"); fi
for what in "${sizes[@]}"; do
  echo "== $hosts hosts, $((hosts * 4)) applications, $loss % loss: $what"
  # shellcheck disable=SC2086
  talk --type $what --time "$seconds"
done

if [ "$replacements" != 0 ]; then
  echo "== the daemons are replaced meanwhile, in turn, $replacements times: nobody notices"
  for begun in $(seq 0 25 $((replacements - 1))); do
    talk --type bulk --size 64K --time 10 > /run/replaced 2>&1 &  # 25 replacements fit into one run
    talking=$!
    sleep 1
    for i in $(seq $((begun + 1)) $((begun + 25 < replacements ? begun + 25 : replacements))); do
      "$daemon" --replace --socket "/run/host$((i % hosts + 1))" >> /run/pauses
    done
    if ! wait "$talking"; then
      cat /run/replaced /run/daemon* >&2
      exit 1
    fi
    grep -h "verified\|^out" /run/replaced
  done
  grep -o '[0-9.]* ms' /run/pauses | sort -n | awk '{ all[NR] = $1 } END { printf "%d replacements; they stood still for %s ms in the median, %s ms at most\n", NR, all[int((NR + 1) / 2)], all[NR] }'
fi

# Three daemons are replaced and the last two killed, while two sets of applications talk. One set is on the hosts whose
# daemons live: all of its bytes must be verified. The other set is on all hosts; its run fails, as its console says.
survivors=$((hosts > 2 ? hosts - 2 : 1))
killed=$(seq $((survivors + 1)) "$hosts")
to_replace=$((survivors < 3 ? survivors : 3))
echo "== $to_replace daemons are replaced and $((hosts - survivors)) killed meanwhile: the others' applications do not notice"
# between HOSTS FROM TO OPTIONS...: traffic from portal FROM to portal TO of the first HOSTS hosts.
between() {
  local hosts=$1 from=$2 to=$3  # agents() sees this number of hosts
  "$command" nettest console -q --clients "$(agents "$from")" --servers "$(agents "$to")" --concurrency 2 --timeout 20 \
    --verify "${@:4}"
}
between "$survivors" 31 32 --type bulk --size 64K --time $((seconds + 3)) > /run/spared 2>&1 &
spared=$!
between "$hosts" 33 34 --type ping --size 4K --time $((seconds + 3)) > /run/killed 2>&1 &
talking=$!
sleep 1
for host in $(seq "$to_replace"); do "$daemon" --replace --socket "/run/host$host"; done
for host in $killed; do kill -KILL "$(cat "/run/pid$host")"; done
if ! wait "$spared"; then
  echo "applications whose daemons live have failed" >&2
  cat /run/spared /run/daemon* >&2
  exit 1
fi
grep -h "verified\|^out" /run/spared
if wait "$talking"; then
  echo "the console has not noticed that the applications of killed daemons have failed" >&2
  cat /run/killed >&2
  exit 1
fi
for host in $killed; do
  for portal in "${portals[@]}"; do wait_for "/run/agent$host-$portal" "host engine has ended"; done
done
tail -n 3 /run/killed
echo "== they are started again, and their applications with them"
for host in $killed; do start "$host"; done
# A message to a daemon that was restarted may fail, once, with the status restarted. And agents of the run that has
# failed take part in the next one when they have ended what was under way.
for attempt in $(seq 20); do
  if talk --type ping --size 4K --time 1 > /run/first 2>&1; then break; fi
  if [ "$attempt" = 20 ]; then
    echo "there is no run without a failure since the restart" >&2
    cat /run/first /run/daemon* >&2
    exit 1
  fi
  sleep 1
done
for what in "${sizes[@]}"; do
  # shellcheck disable=SC2086
  talk --type $what --time "$seconds"
done
# The other way round: who was a server is now a client.
"$command" nettest console -q --clients "$(agents 33 34)" --servers "$(agents 31 32)" --concurrency 2 \
  --timeout 20 --verify --type ping --size 1K --time "$seconds"
