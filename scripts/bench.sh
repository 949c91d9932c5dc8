run_bench() {
  need build bench
  configure release -D FAIRLEAD_BENCHMARKS=ON -D FAIRLEAD_TESTS=OFF
  if [ $# = 0 ]; then
    echo "./dev bench NAME [ARGUMENT...], where NAME is one of:"
    find bench -name '*_bench.cpp' -printf '  %f\n' | sed 's/_bench\.cpp$//' | sort
    return
  fi
  local name=$1
  shift
  [ -f "bench/${name}_bench.cpp" ] || die "no benchmark '$name': ./dev bench lists them"
  compile build "${name}_bench"
  exec "build/bin/${name}_bench" "$@"
}
