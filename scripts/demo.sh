# The main job between two processes: a server, a client that moves messages and bulk both ways, statistics of both.
demo_server_pid=

# Asks the server to end, which prints its statistics; insists after ten seconds.
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

run_demo() {
  local address=127.0.0.1@udp:20480:39:12 status=0
  local server=(build/bin/fairlead bulkping server --address "$address")
  local client=(build/bin/fairlead bulkping client --server "$address" --bulk-size 1M --loops 100 --threads 2)

  need build
  configure release -D FAIRLEAD_TESTS=OFF -D FAIRLEAD_BENCHMARKS=OFF
  compile build fairlead_command

  trap stop_demo_server EXIT
  echo "$ ${server[*]} &"
  "${server[@]}" &
  demo_server_pid=$!
  echo "$ ${client[*]}"
  "${client[@]}" "$@" || status=$?
  echo "server:"
  stop_demo_server
  return $status
}
