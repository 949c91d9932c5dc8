#!/usr/bin/env bash
# Runs Debian's verbs programs unmodified under `fairlead run`: a server and a client of each, on one host or in two
# network namespaces. Prints a line for each with the client's result. If the caller is root, they run as nobody. The exit code is 0 if none failed and at least one passed;
# with FAIRLEAD_TEST_NO_SKIPS=1 none may be missing either.
set -uo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/verbs_programs.sh [--short] [--between-namespaces] [--command FAIRLEAD] [WORD...]

  --short            a selection, for every day
  --between-namespaces
                     server and client each in their own network namespace: the lines without shared memory
  --command FAIRLEAD the command, by default build/bin/fairlead
  WORD               only lines that contain all of these
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
fairlead=$here/build/bin/fairlead short=no namespaces=no words=()
all_words=("$@")
while [ $# -gt 0 ]; do
  case $1 in
    --short) short=yes ;;
    --between-namespaces) namespaces=yes ;;
    --command) fairlead=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) words+=("$1") ;;
  esac
  shift
done
[ -x "$fairlead" ] || { echo "verbs_programs: no command at $fairlead: ./dev build, or --command" >&2; exit 2; }

ordinary_user=()
if [ $namespaces = yes ] && [ "$(id -u)" != 0 ]; then
  exec unshare --user --map-root-user env VERBS_PROGRAMS=mapped "$0" "${all_words[@]}"
fi
if [ "$(id -u)" = 0 ] && [ "${VERBS_PROGRAMS:-}" != mapped ]; then
  ordinary_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  if ! "${ordinary_user[@]}" test -x "$fairlead"; then
    echo "verbs_programs: nobody may not execute $fairlead: build in a folder that all may read, or --command another" >&2
    exit 2
  fi
fi
prefix=()  # words before `fairlead run`
rspreload=/usr/lib/$(uname -m)-linux-gnu/rsocket/librspreload.so
limit=$([ $short = yes ] && echo 60 || echo 240)  # seconds
folder=$(mktemp -d) server= holders=()
chmod 755 "$folder"
# XRC programs leave the files that identify their domains.
trap 'for p in $server "${holders[@]}"; do kill "$p" 2>/dev/null; done; rm -rf "$folder" /tmp/xrc_domain{,_client,_server}' EXIT

# Where servers and clients run, and under which addresses. A line names the server's address 127.0.0.1, and a client
# that binds itself names its own after -b.
server_at=() client_at=() address=127.0.0.1 client_address=127.0.0.1
hold_namespace() {
  unshare --net sleep infinity &
  holders+=($!)
  for _ in {1..500}; do
    [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ] && return
    sleep 0.01
  done
  echo "verbs_programs: no permission to make a network namespace" >&2
  exit 2
}
if [ $namespaces = yes ]; then
  hold_namespace
  hold_namespace
  server_at=(nsenter --target "${holders[0]}" --net) client_at=(nsenter --target "${holders[1]}" --net)
  address=10.77.0.1 client_address=10.77.0.2
  "${server_at[@]}" ip link add fl0 type veth peer name fl1 netns "${holders[1]}" || exit 2
  "${server_at[@]}" sh -c "ip address add $address/24 dev fl0 && ip link set fl0 up && ip link set lo up" || exit 2
  "${client_at[@]}" sh -c "ip address add $client_address/24 dev fl1 && ip link set fl1 up && ip link set lo up" || exit 2
fi
port=$((10000 + $$ % 8000)) passed=0 failed=0 skipped=0

# Sets `port` to one without a listener, for the programs' control connections.
next_port() {
  for _ in {1..2000}; do
    port=$((port < 18999 ? port + 1 : 10000))
    is_listening || return
  done
}
is_listening() { [ -n "$("${server_at[@]}" ss --listening --tcp --udp --numeric --no-header "sport = :$port")" ]; }

# Prints the client's result in short form.
figure() {
  case $1 in
    qperf) awk -F ' += +' '/ = / { gsub(/^ +/, "", $1); if (!n++) printf "%s %s", $1, $2 }' "$2" ;;
    ibv_*) awk '/usec\/iter/ { printf "%s us an exchange", $(NF - 1) }' "$2" ;;
    *_lat) awk '/^ [0-9]+ / { line = $0 } END { $0 = line; if (NF > 8) printf "%s B: typical %s us, 99.9 %% %s us", $1, $5, $NF; else if (NF > 4) printf "%s B: typical %s us", $1, $5 }' "$2" ;;
    ucx_perftest) awk '/^Final:/ { printf "%s us, %s MB/s", $3, $6 }' "$2" ;;
    mpirun | mpiexec.mpich) tail -n 1 "$2" | tr -d '\n' ;;
    iperf) awk '/bits\/sec/ { line = $0 } END { $0 = line; if (NF > 1) printf "%s %s", $(NF - 1), $NF }' "$2" ;;
    *_bw) awk '/^ [0-9]+ / { line = $0 } END { $0 = line; if (NF > 3) printf "%s B: %s MB/s", $1, $4 }' "$2" ;;
  esac
}

# Returns whether the words of the command line select this program. Sets `line`.
is_chosen() {
  local options=$1 word
  shift
  for word in "${words[@]}"; do
    [[ "${prefix[*]} $options $*" == *"$word"* ]] || return 1
  done
  [ $namespaces = no ] || [[ "$options" != *shm* ]] || return 1
  printf -v line '%-62s %-12s' "${prefix:+${prefix[*]##*/} }$*${UCX_TLS:+ ($UCX_TLS)}" "${options//drop=1%,reorder=5:16,duplicate=1%/1%}"
  command -v "$1" >/dev/null && return
  skipped=$((skipped + 1))
  echo "skip $line $1 is not installed"
  return 1
}

# tell_end PROGRAM CODE [CODE OF THE SERVER]: prints the result.
tell_end() {
  if [ "$2" = 0 ] && [ "${3:-0}" = 0 ]; then
    passed=$((passed + 1))
    echo "ok   $line $(figure "$1" "$folder/client")"
    return
  fi
  failed=$((failed + 1))
  echo "FAIL $line client: $2, server: ${3:-none}"
  tail -n 40 "$folder/client" | sed 's/^/     client: /'
  # The client's error comes first.
  [ -z "${3:-}" ] || tail -n 40 "$folder/server" | sed 's/^/     server: /'
}

# end_server CLIENT_CODE: waits for the server and sets `server_code`. A server whose client has failed may wait for
# ever, so it is ended after 10 s.
end_server() {
  if [ "$1" != 0 ]; then
    for _ in {1..100}; do
      kill -0 $server 2>/dev/null || break
      sleep 0.1
    done
    kill $server 2>/dev/null
  fi
  wait $server 2>/dev/null
  server_code=$?
  server=
}

# pair "OPTIONS OF fairlead run" PROGRAM ARGUMENT...
pair() {
  is_chosen "$@" || return 0
  local options=$1 code server_code
  shift
  next_port
  local run=("${ordinary_user[@]}" "${prefix[@]}" "$fairlead" run) ours=("$@") theirs=("$@" -p "$port" "$address")
  # shellcheck disable=SC2206
  run+=($options --)
  if [ "$1" = qperf ]; then
    ours=(qperf -lp "$port") theirs=(qperf -lp "$port" "$address" "${@:2}")
  else
    ours+=(-p "$port")
  fi
  timeout "$limit" "${server_at[@]}" "${run[@]}" "${ours[@]}" >"$folder/server" 2>&1 &
  server=$!
  for _ in {1..1000}; do
    is_listening && break
    kill -0 $server 2>/dev/null || break
    sleep 0.02
  done
  timeout "$limit" "${client_at[@]}" "${run[@]}" "${theirs[@]}" >"$folder/client" 2>&1
  code=$?
  if [ "$1" = qperf ]; then
    kill $server
    wait $server 2>/dev/null
    server_code=0
    server=
    grep -q ' = ' "$folder/client" || code=1
  else
    end_server $code
  fi
  tell_end "$1" $code $server_code
}

# managed "OPTIONS" "SERVER" "CLIENT": programs of librdmacm. PORT in their words is the port; port=N before the words of a
# server sets a fixed one. Servers that go on after their client are ended.
managed() {
  local options=$1 ours=$2 theirs=$3 code server_code
  # shellcheck disable=SC2086
  is_chosen "$options" $theirs || return 0
  next_port
  ours=${ours//127.0.0.1/$address} theirs=${theirs//-b 127.0.0.1/-b $client_address}
  theirs=${theirs//127.0.0.1/$address}
  [[ "$ours" != port=* ]] || { port=${ours%% *}; port=${port#port=} ours=${ours#* }; }
  local run=("${ordinary_user[@]}" "${prefix[@]}" "$fairlead" run)
  # shellcheck disable=SC2206
  run+=($options --)
  # shellcheck disable=SC2086
  timeout "$limit" "${server_at[@]}" "${run[@]}" ${ours//PORT/$port} >"$folder/server" 2>&1 &
  server=$!
  for _ in {1..1000}; do
    is_listening && break
    kill -0 $server 2>/dev/null || break
    sleep 0.02
  done
  # shellcheck disable=SC2086
  timeout "$limit" "${client_at[@]}" "${run[@]}" ${theirs//PORT/$port} >"$folder/client" 2>&1
  code=$?
  if [[ " cmtime iperf rcopy udpong " == *" ${theirs%% *} "* ]]; then
    kill $server 2>/dev/null
    wait $server 2>/dev/null
    server_code=0 server=
  else
    end_server $code
  fi
  tell_end "${theirs%% *}" $code $server_code
}

# ucx TRANSPORT "OPTIONS OF fairlead run" ARGUMENT OF ucx_perftest...: UCX over this transport only, without other settings.
ucx() {
  local -x UCX_TLS=$1,self
  pair "$2" ucx_perftest "${@:3}"
}

# open_mpi "OPTIONS OF fairlead run" RANKS OPTION OF mpirun...: a test of MPI's guarantees.
open_mpi() {
  local -x OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  [ $namespaces = no ] || return 0  # mpirun starts all ranks in its own
  local job=(mpirun --oversubscribe -np "$2" "${@:3}")
  is_chosen "$1" "${job[@]}" || return 0
  cp "$here/tests/mpi_program.py" "$folder"  # other users may not read the source tree
  # shellcheck disable=SC2086
  (cd "$folder" && timeout "$limit" "${ordinary_user[@]}" "${job[@]}" "$fairlead" run $1 -- python3 mpi_program.py) >"$folder/client" 2>&1
  tell_end mpirun $?
}

# mpi TRANSPORT "OPTIONS OF fairlead run" RANKS: over UCX and this transport only.
mpi() {
  local -x UCX_TLS=$1,self
  open_mpi "$2" "$3" --mca pml ucx --mca osc ucx
}

# openib "OPTIONS OF fairlead run" RANKS: over Open MPI's own use of verbs, which needs LIDs.
openib() {
  open_mpi "--personality ib $1" "$2" --mca btl openib,self --mca pml ob1 --mca btl_openib_allow_ib 1 \
    --mca btl_openib_warn_no_device_params_found 0
}

# mpich TRANSPORT "OPTIONS OF fairlead run" RANKS: the same over MPICH.
mpich() {
  local -x UCX_TLS=$1,self
  [ $namespaces = no ] || return 0
  local job=(mpiexec.mpich -n "$3")
  is_chosen "$2" "${job[@]}" || return 0
  cp "$here/tests/mpich_program.py" "$folder"
  # shellcheck disable=SC2086
  (cd "$folder" && timeout "$limit" "${ordinary_user[@]}" "${job[@]}" "$fairlead" run $2 -- python3 mpich_program.py) >"$folder/client" 2>&1
  tell_end mpiexec.mpich $?
}

faults="--path udp --fault drop=1%,reorder=5:16,duplicate=1%"

selection() {
  pair "" ibv_rc_pingpong -g 0 -n 200 -c
  pair "" ibv_rc_pingpong -g 0 -n 100 -e -N -s 65536 -c
  pair "" ibv_uc_pingpong -g 0 -n 100 -e -m 1024
  pair "" ibv_ud_pingpong -g 0 -n 100 -s 1024
  pair "" ibv_srq_pingpong -g 0 -n 100 -q 8
  pair "--path udp" ibv_xsrq_pingpong -g 0 -n 100
  pair "--personality ib" ibv_rc_pingpong -n 100 -c
  pair "--path udp" ib_send_lat -n 200 -s 64
  pair "--path udp" ib_send_bw -n 200 -s 65536 -b
  pair "--path udp" ib_write_lat -n 200
  pair "--path shm" ib_write_bw -n 200 -q 16
  pair "--path udp" ib_read_lat -n 200 -e
  pair "--path shm" ib_read_bw -n 200 -q 16
  pair "--path udp" ib_atomic_lat -n 200
  pair "--path udp" ib_atomic_bw -n 200 -A CMP_AND_SWAP
  pair "--path udp" ib_send_lat -c UD -n 200 -s 1024
  pair "--path udp" ib_write_bw -c UC -n 200
  pair "--path shm" ib_send_bw -n 200 -r 256 --use-srq -q 4
  pair "--personality ib" qperf -t 1 rc_lat ud_lat  # qperf sends no GID, so it needs LIDs
  pair "$faults" ib_write_bw -n 500 -s 65536
  pair "$faults" ib_send_lat -n 500
  managed "--path shm" "rping -s -C 20 -p PORT" "rping -c -a 127.0.0.1 -C 20 -p PORT"
  managed "--path udp" "ucmatose -c 5 -p PORT" "ucmatose -c 5 -p PORT -s 127.0.0.1"
  managed "--path udp" "rdma_xserver -c x -p PORT" "rdma_xclient -c x -s 127.0.0.1 -p PORT"
  managed "" "fi_pingpong -p verbs -e msg -I 100 -S 64 -B PORT" "fi_pingpong -p verbs -e msg -I 100 -S 64 -P PORT 127.0.0.1"
  managed "" "port=21504 mckey -m 239.84.0.2 -b 127.0.0.1 -C 5" "mckey -m 239.84.0.2 -b 127.0.0.1 -C 5 -s"
  ucx rc "" -t tag_lat -n 200
  ucx ud "--path udp" -t tag_lat -n 200
  mpi rc "" 2
  mpi ud "--path udp" 2
  openib "" 2
}

pingpongs() {
  local path kind option
  for path in "--path shm" "--path udp"; do
    for kind in rc uc ud srq; do
      for option in "-n 500" "-n 200 -e" "-n 200 -c" "-n 200 -r 50" "-n 200 -l 1 -i 1"; do
        pair "$path" ibv_${kind}_pingpong -g 0 $option
      done
      [ $kind = ud ] && continue
      for option in "-s 1 -n 200 -c" "-s 1048576 -n 50 -c" "-m 256 -n 200 -c" "-m 4096 -n 200 -e"; do
        pair "$path" ibv_${kind}_pingpong -g 0 $option
      done
    done
    # Not -t with -e: the program reports an error for an event whose completion it has polled already.
    for option in "-t" "-j" "-N" "-N -t" "-N -e -s 65536 -c"; do
      pair "$path" ibv_rc_pingpong -g 0 -n 200 $option
    done
    pair "$path" ibv_srq_pingpong -g 0 -n 200 -q 4 -e
    for option in "" "-e" "-s 1000000"; do
      pair "$path" ibv_xsrq_pingpong -g 0 -n 200 $option
    done
    for kind in rc uc ud srq; do
      pair "$path --personality ib" ibv_${kind}_pingpong -n 200
    done
  done
}

perftests() {
  local path test
  for path in "--path shm" "--path udp"; do
    for test in "ib_send_lat -c RC" "ib_send_lat -c UC" "ib_send_lat -c UD" "ib_write_lat -c RC" "ib_write_lat -c UC" \
      "ib_read_lat" "ib_atomic_lat -A FETCH_AND_ADD" "ib_atomic_lat -A CMP_AND_SWAP" "ib_send_bw -c RC" "ib_send_bw -c UC" \
      "ib_send_bw -c UD" "ib_write_bw -c RC" "ib_write_bw -c UC" "ib_read_bw" "ib_atomic_bw -A FETCH_AND_ADD" \
      "ib_atomic_bw -A CMP_AND_SWAP"; do
      pair "$path" $test -n 1000
    done
    for test in ib_send_lat ib_write_lat ib_read_lat ib_send_bw ib_write_bw ib_read_bw; do
      pair "$path" $test -a -n 50
    done
    for test in ib_send_lat ib_send_bw ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw; do
      pair "$path" $test -c XRC -n 500
    done
    # perftest has no events for writes.
    for test in "ib_send_lat" "ib_send_lat -c UD" "ib_send_lat -c UC" ib_read_lat ib_atomic_lat "ib_send_bw" "ib_send_bw -c UD" \
      ib_read_bw ib_atomic_bw; do
      pair "$path" $test -e -n 500
    done
    for test in ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw; do
      pair "$path" $test -b -n 500
      pair "$path" $test -q 16 -n 500
    done
    pair "$path" ib_write_bw -c UC -q 16 -n 500
    pair "$path" ib_send_bw -c UD -b -n 500
    pair "$path" ib_send_bw -r 256 --use-srq -q 4 -n 500
    pair "$path" ib_send_lat -r 256 --use-srq -n 500
    pair "$path" ib_send_lat -I 64 -s 32 -n 500
    pair "$path" ib_send_lat -x 3 -n 500
    pair "$path" ib_write_lat -I 64 -s 32 -n 500
    pair "$path" ib_write_bw -I 64 -s 32 -n 500
    # Messages of a gibibyte, the longest that a port permits.
    for test in "ib_send_bw -r 2" ib_write_bw ib_read_bw; do
      pair "$path" $test -s 1073741824 -n 5 -t 1
    done
    # Long enough for every ring and sequence to wrap.
    for test in ib_send_lat "ib_write_bw -s 8" "ib_read_bw -s 8" ib_atomic_bw; do
      pair "$path" $test -n 100000
    done
  done
}

others() {
  local test
  for test in rc_lat ud_lat uc_lat rc_bw uc_bw ud_bw rc_rdma_read_lat rc_rdma_read_bw rc_rdma_write_lat \
    rc_rdma_write_poll_lat rc_rdma_write_bw rc_fetch_add_mr rc_compare_swap_mr; do
    pair "--personality ib --path udp" qperf -t 1 $test
  done
}

# Programs that connect by librdmacm, over Fairlead's connection manager.
over_manager() {
  local path test job="fio --name=job --ioengine=rdma --port=PORT --bs=64k --size=16m"
  mkdir -m 777 "$folder/anybody"
  for path in "--path shm" "--path udp" "$faults"; do
    for test in "-T b -S 4096" "-T n -S 65536" "-T b -T v -S 100000"; do
      managed "$path" "rstream $test -I 10 -C 20 -p PORT" "rstream $test -I 10 -C 20 -p PORT -s 127.0.0.1"
    done
    managed "$path" "riostream -I 10 -C 20 -S 4096 -p PORT" "riostream -I 10 -C 20 -S 4096 -p PORT -s 127.0.0.1"
    managed "$path" "rcopy -p PORT" "rcopy /bin/bash 127.0.0.1:$folder/anybody/copy -p PORT"
    # Datagram rsockets have no GRH in their addresses.
    managed "$path --personality ib" "udpong -b 127.0.0.1 -p PORT" "udpong -s 127.0.0.1 -p PORT -S 100 -C 200"
    # fio has no flow control for sends, and does not end after an RNR error. So its receiver posts a request for each
    # of the 256 messages.
    for test in "write 8" "read 8" "send 1"; do
      managed "$path" "$job --rw=read --iodepth=256 --verify=crc32c" \
        "$job --hostname=127.0.0.1 --rw=write --verify=crc32c --do_verify=0 --verb=${test% *} --iodepth=${test#* }"
    done
    managed "$path" "rping -s -C 100 -v -V -p PORT" "rping -c -a 127.0.0.1 -C 100 -v -V -p PORT"
    managed "$path" "rping -s -C 20 -S 65000 -p PORT" "rping -c -a 127.0.0.1 -C 20 -S 65000 -p PORT"
    managed "$path" "rdma_server -p PORT" "rdma_client -s 127.0.0.1 -p PORT"
    for test in r x; do  # RC and XRC
      managed "$path" "rdma_xserver -c $test -p PORT" "rdma_xclient -c $test -s 127.0.0.1 -p PORT"
    done
    managed "$path" "ucmatose -c 50 -C 20 -p PORT" "ucmatose -c 50 -C 20 -p PORT -s 127.0.0.1"
    managed "$path" "port=7174 udaddy -c 10" "udaddy -c 10 -s 127.0.0.1"
    # Groups use one port, behind the range of the engines.
    managed "$path" "port=21504 mckey -m 239.84.0.1 -b 127.0.0.1 -C 20" "mckey -m 239.84.0.1 -b 127.0.0.1 -C 20 -s"
    managed "$path" "cmtime -p PORT" "cmtime -p PORT -c 100 -s 127.0.0.1"
    for test in ib_send_lat ib_write_lat ib_read_lat ib_atomic_lat ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw; do
      pair "$path" $test -R -n 500
    done
    pair "$path" ib_send_lat -R -c UD -n 500
    pair "$path" qperf -cm1 -t 1 rc_lat
    managed "$path" "fi_pingpong -p verbs -e msg -B PORT" "fi_pingpong -p verbs -e msg -P PORT 127.0.0.1"
    managed "$path" "fi_pingpong -p verbs;ofi_rxm -e rdm -B PORT" "fi_pingpong -p verbs;ofi_rxm -e rdm -P PORT 127.0.0.1"
    # A thousand connections.
    managed "$path" "ucmatose -c 1000 -C 5 -p PORT" "ucmatose -c 1000 -C 5 -p PORT -s 127.0.0.1"
    managed "$path" "cmtime -p PORT" "cmtime -p PORT -c 1000 -s 127.0.0.1"
  done
}

# A TCP program over rsockets. librspreload has no accept4(), so the servers of Python and netcat do not work.
over_rsockets() {
  local path prefix=(env "LD_PRELOAD=$rspreload")
  for path in "--path shm" "--path udp" "$faults"; do
    managed "$path" "iperf -s -p PORT" "iperf -p PORT -t 2 -c 127.0.0.1"
  done
}

# Few descriptors, and no locked memory.
within_limits() {
  local path prefix=(prlimit --nofile=64:64 --memlock=0:0)
  for path in "--path shm" "--path udp"; do
    pair "$path" ib_write_bw -n 500
    pair "$path" ib_send_lat -R -n 500
    managed "$path" "rping -s -C 20 -p PORT" "rping -c -a 127.0.0.1 -C 20 -p PORT"
    managed "$path" "ucmatose -c 100 -C 5 -p PORT" "ucmatose -c 100 -C 5 -p PORT -s 127.0.0.1"
    ucx rc "$path" -t tag_lat -n 200
  done
}

# Each kind of UCX operation over each path.
over_ucx() {
  local path transport test ranks
  for path in "--path shm" "--path udp"; do
    for transport in rc ud; do
      for test in "tag_lat -s 8" "tag_bw -s 1000000" "tag_sync_lat" "stream_lat" "stream_bw -s 65536" "ucp_put_lat" "ucp_put_bw -s 65536" \
        "ucp_get -s 65536" "ucp_fadd" "ucp_swap" "ucp_cswap" "ucp_add" "ucp_am_lat" "ucp_am_bw -s 65536"; do
        ucx $transport "$path" -t $test -n 500
      done
      for ranks in 2 4 8; do
        mpi $transport "$path" $ranks
        mpich $transport "$path" $ranks
      done
    done
    for ranks in 2 4; do
      openib "$path" $ranks
    done
  done
}

under_faults() {
  local test
  for test in "ibv_rc_pingpong -g 0 -c" "ibv_srq_pingpong -g 0" "ibv_uc_pingpong -g 0" "ib_send_lat" "ib_send_bw -s 1048576" \
    "ib_write_lat" "ib_write_bw" "ib_read_lat" "ib_read_bw" "ib_atomic_lat" "ib_atomic_bw" "ib_write_bw -q 16" \
    "ib_send_bw -c UD" "ib_write_bw -c UC"; do
    pair "$faults" $test -n 500
  done
  ucx rc "$faults" -t tag_bw -n 500 -s 100000
  ucx ud "$faults" -t tag_lat -n 500
}

if [ $short = yes ]; then
  selection
else
  pingpongs
  perftests
  others
  over_manager
  over_rsockets
  within_limits
  over_ucx
  under_faults
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed -gt 0 ] && { [ $skipped = 0 ] || [ "${FAIRLEAD_TEST_NO_SKIPS:-}" != 1 ]; }
