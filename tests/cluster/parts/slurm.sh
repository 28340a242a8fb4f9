# munge, MariaDB, slurmdbd, slurmctld, one slurmd a node.

# --- munge, on its usual socket (sacctmgr cannot be told another)
if ! munge -n >/dev/null 2>&1; then
  [[ -f /etc/munge/munge.key ]] || (umask 077; head -c 1024 /dev/urandom > /etc/munge/munge.key)
  mkdir -p /run/munge; chown munge /run/munge /etc/munge/munge.key
  start-stop-daemon --start --quiet --oknodo --chuid munge --exec /usr/sbin/munged -- --force 2>/dev/null
  wait_for munge -n
  cp /run/munge/munged.pid "$ROOT/run/munged.pid"
fi

# --- MariaDB, on a socket and a folder of its own
database() { mariadb --no-defaults -S "$ROOT/db/socket" "$@"; }
if ! alive "$ROOT/run/mariadb.pid" mariadbd; then
  [[ -d $ROOT/db/mysql ]] || mariadb-install-db --no-defaults --user=mysql --datadir="$ROOT/db" --auth-root-authentication-method=socket >/dev/null 2>&1
  chown -R mysql "$ROOT/db"
  rm -f "$ROOT/run/mariadb.pid"
  start-stop-daemon --start --quiet --background --make-pidfile --pidfile "$ROOT/run/mariadb.pid" --exec /usr/sbin/mariadbd -- --no-defaults --user=mysql \
    --datadir="$ROOT/db" --socket="$ROOT/db/socket" --skip-networking --pid-file="$ROOT/db/pid" --innodb-buffer-pool-size=64M
  wait_for database -e 'select 1'
  database -e "create database if not exists slurm; create or replace user slurm@localhost identified by 'slurm'; grant all on slurm.* to slurm@localhost"
fi

# --- configuration
names=$(node_names | paste -sd,)
total=$((SOCKETS * CORES_PER_SOCKET * THREADS_PER_CORE)) cores=$((SOCKETS * CORES_PER_SOCKET))
reserved='' reserved_threads=''               # Slurm's CPU numbers here: core * threads + thread
for core in $RESERVED_CORES; do for ((t = 0; t < THREADS_PER_CORE; t++)); do
  reserved+=${reserved:+,}$((core * THREADS_PER_CORE + t)); reserved_threads+=${reserved_threads:+,}$((core + t * cores)); done; done
for ((g = 0; g < GPUS; g++)); do [[ -c $ROOT/dev/gpu$g ]] || mknod -m 666 "$ROOT/dev/gpu$g" c 1 3; done
number=0
for node in $(node_names); do number=$((number + 1)); grep -qxF "127.0.1.$number $node # $ROOT" /etc/hosts || echo "127.0.1.$number $node # $ROOT" >> /etc/hosts; done
grep -qxF "127.0.0.1 $LOGIN_HOST # $ROOT" /etc/hosts || echo "127.0.0.1 $LOGIN_HOST # $ROOT" >> /etc/hosts

cat > "$ROOT/etc/slurmdbd.conf" <<CONF
AuthType=auth/munge
DbdHost=localhost
DbdPort=$((BASE + 19))
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
LogFile=$ROOT/log/slurmdbd.log
PidFile=$ROOT/run/slurmdbd.pid
${PLUGINS:+PluginDir=$PLUGINS}
CONF
chmod 600 "$ROOT/etc/slurmdbd.conf"
# The kernel limits a job's memory where it has memory groups (cgroup v1), below a group of this cluster's own.
memory=/sys/fs/cgroup/memory/cluster-$BASE
mkdir "$memory" 2>/dev/null || [[ -f $memory/memory.limit_in_bytes ]] || memory=''
printf '%s\n' ${memory:+CgroupPlugin=cgroup/v1} ConstrainRAMSpace=yes > "$ROOT/etc/cgroup.conf"
cat > "$ROOT/etc/slurm.conf.new" <<CONF
ClusterName=$CLUSTER
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
${PLUGINS:+PluginDir=$PLUGINS}
StateSaveLocation=$ROOT/state
FirstJobId=$((BASE / 25 % 80 * 125 + 1))
SlurmdSpoolDir=$ROOT/spool/%n
SlurmctldPidFile=$ROOT/run/slurmctld.pid
SlurmdPidFile=$ROOT/run/slurmd.%n.pid
SlurmctldLogFile=$ROOT/log/slurmctld.log
SlurmdLogFile=$ROOT/log/slurmd.%n.log
SlurmctldPort=$((BASE + 17))
ProctrackType=proctrack/linuxproc
TaskPlugin=${memory:+task/cgroup,}task/affinity
TaskProlog=$ROOT/etc/task_prolog
${DISK_VARIABLE:+Epilog=$ROOT/etc/epilog}
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
EnforcePartLimits=ALL
ReturnToService=2
SlurmdTimeout=20
KillWait=3
MinJobAge=$MIN_JOB_AGE
MpiDefault=none
${CLI_FILTER:+CliFilterPlugins=lua}
${JOB_SUBMIT:+JobSubmitPlugins=lua}
GresTypes=gpu${DISK_GIB:+,nvme}
JobAcctGatherType=jobacct_gather/linux
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((BASE + 19))
AccountingStorageTRES=gres/gpu
$([[ $STORE_COMMENT == 1 ]] && echo AccountingStoreFlags=job_comment)
AccountingStorageEnforce=associations,limits${QOS_LIST:+,qos}
NodeName=$names NodeAddr=127.0.1.[1-$NODES] Port=[$((BASE + 201))-$((BASE + 200 + NODES))] Sockets=$SOCKETS CoresPerSocket=$CORES_PER_SOCKET ThreadsPerCore=$THREADS_PER_CORE ${reserved:+CpuSpecList=$reserved} RealMemory=$MEMORY_MIB Gres=$GRES State=UNKNOWN
${PARTITIONS//@NODES@/$names}
CONF
[[ -z $CLI_FILTER ]] || install -m 644 "$here/shapes/$CLI_FILTER" "$ROOT/etc/cli_filter.lua"
[[ -z $JOB_SUBMIT ]] || install -m 644 "$here/shapes/$JOB_SUBMIT" "$ROOT/etc/job_submit.lua"
[[ $SLURM == 22 || $memory ]] || echo CgroupPlugin=disabled > "$ROOT/etc/cgroup.conf"   # a word 22.05 does not know
echo "NodeName=$names Name=gpu ${GRES_TYPE:+Type=$GRES_TYPE} Flags=$GPU_ENV File=$ROOT/dev/gpu[0-$((GPUS - 1))]" > "$ROOT/etc/gres.conf"
[[ -z $DISK_GIB ]] || echo "NodeName=$names Name=nvme Count=$DISK_GIB" >> "$ROOT/etc/gres.conf"
cat > "$ROOT/etc/task_prolog" <<CONF
#!/bin/sh
echo export LD_PRELOAD=$ROOT/bin/affinity.so
echo export AFFINITY_DIR=$ROOT/aff
echo export AFFINITY_CPUS=$total
echo export AFFINITY_RESERVED=$reserved_threads
echo export MINILUMI_ROOT=$ROOT
CONF
# A folder of the job's own on the disk of each node, for jobs that ask for the gres, or for all where there is none to ask for.
if [[ $DISK_VARIABLE ]]; then
  [[ -z $DISK_GIB ]] || cat >> "$ROOT/etc/task_prolog" <<CONF
[ -n "\$$DISK_VARIABLE" ] || scontrol -o show job "\$SLURM_JOB_ID" 2>/dev/null | grep -q 'TresPerNode=[^ ]*nvme' || exit 0
CONF
  cat >> "$ROOT/etc/task_prolog" <<CONF
mkdir -p /tmp/disk-"\$SLURM_JOB_ID" && chmod 700 /tmp/disk-"\$SLURM_JOB_ID"
echo export $DISK_VARIABLE=/tmp/disk-"\$SLURM_JOB_ID"
CONF
  printf '%s\n' '#!/bin/sh' '[ -z "$SLURM_JOB_ID" ] || rm -rf "/tmp/disk-$SLURM_JOB_ID"' > "$ROOT/etc/epilog"
  chmod 755 "$ROOT/etc/epilog"
fi
chmod 755 "$ROOT/etc/task_prolog"
changed=''; cmp -s "$ROOT/etc/slurm.conf.new" "$SLURM_CONF" || changed=1
mv "$ROOT/etc/slurm.conf.new" "$SLURM_CONF"

# --- slurmdbd and its accounts
if ! alive "$ROOT/run/slurmdbd.pid" slurmdbd; then MYSQL_UNIX_PORT=$ROOT/db/socket slurmdbd; fi   # libmysql has no other way to a socket
wait_for sacctmgr -n show cluster
if ! sacctmgr -nP show assoc user="$LOGIN" account="$ACCOUNT" cluster="$CLUSTER" format=user | grep -q .; then
  sacctmgr -i add cluster "$CLUSTER" >/dev/null 2>&1 || true
  for account in "$ACCOUNT" "$FOREIGN_ACCOUNT"; do sacctmgr -i add account "$account" Description=demo Organization=demo >/dev/null 2>&1 || true; done
  for qos in $QOS_LIST; do sacctmgr -i add qos "$qos" >/dev/null 2>&1 || true; done
  while read -r qos limits; do [[ -z $qos ]] || sacctmgr -i add qos "$qos" >/dev/null 2>&1 || true; done <<< "$QOS_LIMITS"
  sacctmgr -i add user "$LOGIN" Account="$ACCOUNT" >/dev/null
  [[ -z $QOS_LIST ]] || sacctmgr -i modify user "$LOGIN" set qos="${QOS_LIST// /,}" >/dev/null
fi

# --- slurmctld
if alive "$ROOT/run/slurmctld.pid" slurmctld; then [[ -z $changed ]] || scontrol reconfigure
else slurmctld; fi
wait_for scontrol ping
# Accounting knows GPUs since slurmctld has registered. More than a limit allows is refused, it does not wait.
if [[ $QOS_LIMITS != "$(cat "$ROOT/made/limits" 2>/dev/null)" ]]; then
  wait_for eval 'sacctmgr -nP show tres format=type,name | grep -q "^gres|gpu"'
  while read -r qos limits; do [[ -z $qos ]] || sacctmgr -i modify qos "$qos" set $limits Flags=DenyOnLimit >/dev/null; done <<< "$QOS_LIMITS"
  printf '%s' "$QOS_LIMITS" > "$ROOT/made/limits"
fi

# --- slurmd: a host name, a /tmp and a processor of its own for each. torchrun elects the host of its
# rendezvous by name; on the real nodes /tmp is a node's own memory.
order=''
for ((c = 0; c < cores; c++)); do for ((t = 0; t < THREADS_PER_CORE; t++)); do order+=${order:+,}$((c + t * cores)); done; done
started=''
for node in $(node_names); do
  make_driver "$node"; make_devices "$node"
  # A node that was started without its driver's files starts again.
  if alive "$ROOT/run/slurmd.$node.pid" slurmd; then
    [[ -e $ROOT/made/devices-$node ]] && continue
    kill "$(cat "$ROOT/run/slurmd.$node.pid")"; wait_for eval "! alive '$ROOT/run/slurmd.$node.pid' slurmd"
  fi
  touch "$ROOT/made/devices-$node"
  mkdir -p "$ROOT/spool/$node" "$ROOT/nodes/$node/tmp"; chmod 1777 "$ROOT/nodes/$node/tmp"; rm -f "$ROOT/run/slurmd.$node.pid"
  # slurmd looks for slurmstepd where its package has it, which may be the other release
  AFFINITY_DIR=$ROOT/aff AFFINITY_CPUS=$total HWLOC_SYNTHETIC="$TOPOLOGY pu:$THREADS_PER_CORE(indexes=$order)" NODE=$node ROOT=$ROOT DRIVER_PLACE=$(driver_place) STEPD=$(command -v slurmstepd) \
    TREE=$([[ -z $TREE_LINK ]] || readlink -f "$TREE_LINK") MEMORY=$memory \
    unshare --uts --mount sh -ec '
      hostname "$NODE"; own=$ROOT/nodes/$NODE/tmp
      mount --bind "$ROOT/nodes/$NODE/driver" "$DRIVER_PLACE"
      mount --bind "$ROOT/nodes/$NODE/pci" /sys/bus/pci/devices
      mount --bind "$ROOT/nodes/$NODE/domains" /sys/devices/system/node
      for seen in "$ROOT" "$TREE"; do
        case $seen in /tmp/*) mkdir -p "$own/${seen#/tmp/}"; mount --bind "$seen" "$own/${seen#/tmp/}" ;; esac
      done
      mount --rbind "$own" /tmp
      [ -z "$MEMORY" ] || mount --bind "$MEMORY" /sys/fs/cgroup/memory
      LD_PRELOAD=$ROOT/bin/affinity.so exec slurmd -N "$NODE" -d "$STEPD"'
  started=1
done
if [[ $started ]]; then
  find "$ROOT/aff" -type f -mmin +60 -delete
  scontrol update nodename="$names" state=resume 2>/dev/null || true
fi
all_there() { [[ $(sinfo -hN -t idle,mix,alloc,comp -o %N | sort -u | wc -l) == "$NODES" ]]; }
wait_for all_there
