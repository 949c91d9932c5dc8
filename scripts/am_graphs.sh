# Redraws docs/am-latency.svg or docs/am-bandwidth.svg from measurements of this host, which should be idle otherwise:
#   bash scripts/am_graphs.sh latency|bandwidth [ROUNDS]
# Each round measures all curves in turn. The graph shows the best round of each size.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh
need plot
graph=${1:?latency or bandwidth}
rounds=${2:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# column NAME FIELD OPTION...: appends "bytes value" of each row; the value is FIELD fields behind the path.
column() {
  local name=$1 field=$2
  shift 2
  build/bin/fairlead perf "$@" --seconds "$seconds" --no-floor | awk -v field="$field" '
    NR > 1 { for (i = 1; i <= NF; ++i) if ($i == "udp" || $i == "shm") break
             size = $(i + 1); unit = size ~ /K$/ ? 1024 : size ~ /M$/ ? 1048576 : 1
             print (size + 0) * unit, $(i + field) }' >>"$folder/$name"
}

# best NAME least|most: keeps the best value of each size, one per line.
best() {
  sort -n "$folder/$1" | awk -v want="$2" '
    !($1 in value) || (want == "least" ? $2 < value[$1] : $2 > value[$1]) { value[$1] = $2 }
    END { for (size in value) print size, value[size] }' | sort -n >"$folder/$1.best"
}

common="set grid lc rgb '#dddddd'
set key bottom right
set yrange [0:*]
set logscale x 2
set format x '%.0b%B'"
line="with linespoints pt 7 ps 0.5 lw 1.5 lc rgb"
case $graph in
  latency)
    seconds=0.1
    sizes=8,16,32,64,128,256,512,768,864,1K,1500,2K,3K,4K
    for ((round = 0; round < rounds; ++round)); do
      for path in udp shm; do
        column $path-packed 2 am --path $path --size "$sizes"
        column $path-unpacked 2 am --path $path --size "$sizes" --unpacked
      done
    done
    for name in udp-packed udp-unpacked shm-packed shm-unpacked; do best $name least; done
    gnuplot <<PLOT
set terminal svg size 960,400 font 'sans-serif,13' background 'white'
set output 'docs/am-$graph.svg'
$common
set xlabel 'bytes of a medium request'
set ylabel 'request and short reply, µs (median)'
set arrow from 864, graph 0 to 864, graph 1 nohead dt 3 lc rgb '#888888'
set label '864' at 900, graph 0.96
set multiplot layout 1,2
set title 'UDP over the loopback'
plot '$folder/udp-packed.best' $line '#1f77b4' title 'packed up to 864 bytes', \
     '$folder/udp-unpacked.best' $line '#d62728' title 'nothing packed'
set title 'shared memory'
plot '$folder/shm-packed.best' $line '#1f77b4' title 'packed up to 864 bytes', \
     '$folder/shm-unpacked.best' $line '#d62728' title 'nothing packed'
PLOT
    ;;
  bandwidth)
    seconds=0.15
    for ((round = 0; round < rounds; ++round)); do
      for path in udp shm; do
        column $path-medium 2 am --path $path --one-way --size 1K,4K,16K,64000
        column $path-long 2 am --path $path --one-way --kind long --depth 32 --size 1K,4K,16K,64K,256K,1M
      done
    done
    for name in udp-medium udp-long shm-medium shm-long; do best $name most; done
    gnuplot <<PLOT
set terminal svg size 760,420 font 'sans-serif,13' background 'white'
set output 'docs/am-$graph.svg'
$common
set xlabel 'bytes of a message'
set ylabel 'GB/s, one way'
plot '$folder/shm-long.best' $line '#1f77b4' title 'long, shared memory', \
     '$folder/shm-medium.best' $line '#7fbfe8' title 'medium, shared memory', \
     '$folder/udp-long.best' $line '#d95f02' title 'long, UDP', \
     '$folder/udp-medium.best' $line '#fdae6b' title 'medium, UDP'
PLOT
    ;;
  *) die "no graph '$graph': latency or bandwidth" ;;
esac
tail -n +1 "$folder"/*.best
