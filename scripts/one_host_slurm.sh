#!/bin/bash
# A Slurm of one host, for as long as a command runs in it: as root, without a cluster or changes to the host's own Slurm.
#   scripts/one_host_slurm.sh srun --mpi=pmix -n 4 build/bin/amudp/amudp_kinds 1 B
# It needs Debian's slurmctld, slurmd, slurm-client and munge. The daemons run in a process namespace that ends with the
# command. TASKS=16 permits that many tasks (default 8), however many processors there are.
set -euo pipefail
for program in munged slurmctld slurmd srun scontrol; do
  command -v "$program" > /dev/null || PATH=$PATH:/usr/sbin
  command -v "$program" > /dev/null && continue
  echo "one_host_slurm: $program is missing: apt install slurmctld slurmd slurm-client munge" >&2
  exit 2
done
if [ $# = 0 ] || [ "$(id -u)" != 0 ]; then
  echo "usage, as root: one_host_slurm.sh COMMAND..." >&2
  exit 2
fi
if [ "${ONE_HOST_SLURM:-}" = "" ]; then
  ONE_HOST_SLURM=$(mktemp -d /tmp/slurm.XXXXXX)
  export ONE_HOST_SLURM
  trap 'rm -rf "$ONE_HOST_SLURM"' EXIT
  unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@"
  exit
fi

folder=$ONE_HOST_SLURM
host=$(hostname -s)
tasks=${TASKS:-8}
mkdir "$folder/state" "$folder/spool"
export SLURM_CONF=$folder/slurm.conf
cat > "$SLURM_CONF" << END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$folder/munge.socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SlurmdParameters=config_overrides
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmdSpoolDir=$folder/spool
StateSaveLocation=$folder/state
NodeName=$host NodeAddr=127.0.0.1 CPUs=$tasks CoresPerSocket=$tasks
PartitionName=all Nodes=$host Default=YES
END
echo CgroupPlugin=cgroup/v1 > "$folder/cgroup.conf"     # not used, but Slurm needs a plugin for it
echo PMIxCliTmpDirBase="$folder" > "$folder/mpi.conf"  # the folders there have the same names in each such Slurm

# start PROGRAM ARGUMENTS...: starts a daemon. Its output is shown if Slurm does not become ready.
start() {
  "$@" >> "$folder/start.log" 2>&1
}
dd if=/dev/urandom of="$folder/munge.key" bs=1024 count=1 status=none
chmod 600 "$folder/munge.key"
chmod 755 "$folder"
start munged --force --key-file "$folder/munge.key" --socket "$folder/munge.socket" --pid-file "$folder/munged.pid" \
  --log-file "$folder/munged.log" --seed-file "$folder/munge.seed"
start slurmctld
start slurmd
for _ in $(seq 100); do
  if sinfo --noheader --format %T 2>> "$folder/start.log" | grep --quiet --line-regexp idle; then
    status=0
    "$@" || status=$?
    exit "$status"
  fi
  start scontrol update nodename="$host" state=resume || true
  sleep 0.1
done
echo "one_host_slurm: the node does not become idle" >&2
tail --lines 20 "$folder"/*.log >&2
exit 1
