# Redraws docs/am-latency.svg or docs/am-bandwidth.svg from measurements of this host, which should do nothing else:
#   bash scripts/am_graphs.sh latency|bandwidth [ROUNDS]
# The curves take turns in each round; of each size the best of the rounds is drawn.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh
need plot
graph=${1:?latency or bandwidth}
rounds=${2:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# column NAME FIELD OPTION...: appends "bytes value" of each row; the value stands so many fields behind the path.
column() {
  local name=$1 field=$2
  shift 2
  build/bin/fairlead perf "$@" --seconds 0.4 --no-floor | awk -v field="$field" '
    NR > 1 { for (i = 1; i <= NF; ++i) if ($i == "udp" || $i == "shm") break
             size = $(i + 1); unit = size ~ /K$/ ? 1024 : size ~ /M$/ ? 1048576 : 1
             print (size + 0) * unit, $(i + field) }' >>"$folder/$name"
}

# best NAME least|most: one line a size.
best() {
  sort -n "$folder/$1" | awk -v want="$2" '
    !($1 in value) || (want == "least" ? $2 < value[$1] : $2 > value[$1]) { value[$1] = $2 }
    END { for (size in value) print size, value[size] }' | sort -n >"$folder/$1.best"
}

common="set terminal svg size 760,420 font 'sans-serif,13' background 'white'
set grid lc rgb '#dddddd'
set key top left
set yrange [0:*]
set output 'docs/am-$graph.svg'"
case $graph in
  latency)
    sizes=8,16,32,64,128,256,512,768,864,1K,1500,2K,3K,4K
    for ((round = 0; round < rounds; ++round)); do
      column packed 2 am --size "$sizes"
      column unpacked 2 am --size "$sizes" --unpacked
    done
    best packed least
    best unpacked least
    gnuplot <<PLOT
$common
set xlabel 'bytes of a medium request'
set ylabel 'request and short reply, us (median)'
set arrow from 864, graph 0 to 864, graph 1 nohead dt 3 lc rgb '#888888'
set label '864' at 880, graph 0.05
plot '$folder/packed.best' with linespoints pt 7 ps 0.5 lc rgb '#1f77b4' title 'packed up to 864 bytes', \
     '$folder/unpacked.best' with linespoints pt 7 ps 0.5 lc rgb '#d62728' title 'nothing packed'
PLOT
    ;;
  bandwidth)
    sizes=1K,4K,16K,64K,128K,256K,512K,1M
    for ((round = 0; round < rounds; ++round)); do
      column medium 2 am --one-way --size 1K,4K,16K,64000
      column long 2 am --one-way --kind long --depth 32 --size "$sizes"
      column put 6 bandwidth --path udp --size "$sizes"
    done
    for name in medium long put; do best "$name" most; done
    gnuplot <<PLOT
$common
set logscale x 2
set format x '%.0b%B'
set xlabel 'bytes of a message'
set ylabel 'GB/s, one way'
plot '$folder/put.best' with linespoints pt 7 ps 0.5 lc rgb '#2ca02c' title 'put, the engine itself', \
     '$folder/long.best' with linespoints pt 7 ps 0.5 lc rgb '#1f77b4' title 'long', \
     '$folder/medium.best' with linespoints pt 7 ps 0.5 lc rgb '#ff7f0e' title 'medium'
PLOT
    ;;
  *) die "no graph '$graph': latency or bandwidth" ;;
esac
tail -n +1 "$folder"/*.best
