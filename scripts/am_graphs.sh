# Redraws docs/am-latency.svg and docs/am-bandwidth.svg from measurements of this host: `bash scripts/am_graphs.sh [ROUNDS]`.
# The rounds take turns; of each size the least of the rounds' medians (times), or the most (GB/s), is drawn.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/common.sh
need plot
rounds=${1:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fairlead=build/bin/fairlead
small=8,16,32,64,128,256,512,768,864,1K,1500,2K,3K,4K
large=1K,4K,16K,64000
longer=1K,4K,16K,64K,128K,256K,512K,1M

# column NAME FIELD OPTION...: appends "bytes value" of each row to a file.
column() {
  local name=$1 field=$2
  shift 2
  "$fairlead" perf "$@" --seconds 0.5 --no-floor | awk -v field="$field" '
    NR > 1 { for (i = 1; i <= NF; ++i) if ($i == "udp" || $i == "shm") break
             size = $(i + 1); if (size ~ /K$/) size *= 1024; else if (size ~ /M$/) size *= 1048576
             print size + 0, $(i + field) }' >>"$folder/$name"
}
for ((round = 0; round < rounds; ++round)); do
  column packed 2 am --size "$small"
  column unpacked 2 am --size "$small" --unpacked
  column medium 2 am --one-way --size "$large"
  column long 2 am --one-way --kind long --depth 32 --size "$longer"
  column put 6 bandwidth --size "$longer"
done
for name in packed unpacked; do
  sort -n "$folder/$name" | awk '$1 != last { if (NR > 1) print last, best; last = $1; best = $2 } $2 < best { best = $2 } END { print last, best }' >"$folder/$name.best"
done
for name in medium long put; do
  sort -n "$folder/$name" | awk '$1 != last { if (NR > 1) print last, best; last = $1; best = $2 } $2 > best { best = $2 } END { print last, best }' >"$folder/$name.best"
done
gnuplot <<PLOT
set terminal svg size 760,420 font 'sans-serif,13' background 'white'
set grid lc rgb '#dddddd'
set key top left
set xlabel 'bytes of a medium request'
set ylabel 'request and reply, us'
set yrange [0:*]
set output 'docs/am-latency.svg'
set arrow from 864, graph 0 to 864, graph 1 nohead dt 3 lc rgb '#888888'
set label '864' at 880, graph 0.05
plot '$folder/packed.best' with linespoints pt 7 ps 0.5 lc rgb '#1f77b4' title 'packed up to 864 bytes', \
     '$folder/unpacked.best' with linespoints pt 7 ps 0.5 lc rgb '#d62728' title 'nothing packed'
unset arrow
unset label
set output 'docs/am-bandwidth.svg'
set logscale x 2
set format x '%.0b%B'
set xlabel 'bytes of a message'
set ylabel 'GB/s, one way'
plot '$folder/put.best' with linespoints pt 7 ps 0.5 lc rgb '#2ca02c' title 'put, the engine itself', \
     '$folder/long.best' with linespoints pt 7 ps 0.5 lc rgb '#1f77b4' title 'long', \
     '$folder/medium.best' with linespoints pt 7 ps 0.5 lc rgb '#ff7f0e' title 'medium'
PLOT
tail -n +1 "$folder"/*.best
