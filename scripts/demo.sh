# Shows the main use: a server, and a client that exchanges messages and bulk data with it. Prints statistics of both.
demo_server_pid=

# Asks the server to end, which then prints its statistics. Kills it after ten seconds.
stop_demo_server() {
  local tries
  if [ -z "$demo_server_pid" ]; then
    return
  fi
  kill -TERM "$demo_server_pid" 2>/dev/null || true
  for tries in {1..100}; do
    kill -0 "$demo_server_pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$demo_server_pid" 2>/dev/null || true
  wait "$demo_server_pid" || true
  demo_server_pid=
}

# Prints the address that the server reports; nothing if it ends or reports none within ten seconds.
demo_server_address() {
  local output=$1 tries
  for tries in {1..100}; do
    if grep -q '^serving at' "$output"; then
      sed -n 's/^serving at \([^ ,]*\).*/\1/p' "$output"
      return
    fi
    kill -0 "$demo_server_pid" 2>/dev/null || return 0
    sleep 0.1
  done
}

run_demo() {
  need build
  configure release -D FAIRLEAD_TESTS=OFF -D FAIRLEAD_BENCHMARKS=OFF
  compile build fairlead_command fairleadd fairlead_ibverbs example_hello example_hello_c example_remote_memory  # in the README

  local fairlead=build/bin/fairlead output=build/demo_server.txt address status=0
  trap stop_demo_server EXIT
  echo "$ $fairlead bulkping server --address '127.0.0.1@udp:*:39:12' &"
  $fairlead bulkping server --address '127.0.0.1@udp:*:39:12' >"$output" &
  demo_server_pid=$!
  address=$(demo_server_address "$output")
  [ -n "$address" ] || die "the server did not start: see above"

  echo "$ $fairlead bulkping client --server $address --bulk-size 1M --loops 100 --threads 2"
  $fairlead bulkping client --server "$address" --bulk-size 1M --loops 100 --threads 2 "$@" || status=$?
  stop_demo_server
  echo
  cat "$output"
  return $status
}
