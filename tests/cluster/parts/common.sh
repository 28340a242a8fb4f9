# Names and functions of up and down.

PROFILE=/etc/profile.d/00-cluster$(tr / - <<< "$ROOT").sh

wait_for() { for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep .1; done; echo "cluster: timed out: $*" >&2; return 1; }

# alive PIDFILE PROGRAM: the process of a pid file, if it still is that program (process ids come again)
alive() { local pid; [[ -s $1 ]] && pid=$(cat "$1" 2>/dev/null) && [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$2" ]]; }

# The folders of all clusters of this machine, one a line: `up` adds its own.
ROSTER=${ROSTER:-/var/lib/minilumi/roots}
other_roots() { local root; while read -r root; do [[ $root == "$ROOT" || ! -f $root/cluster.env ]] || echo "$root"; done 2>/dev/null < "$ROSTER"; }

# hand_over ROOT: what this cluster made for all is the other one's now. Links lead to the other one's tree.
hand_over() {
  local heir=$1 own link name
  mkdir -p "$heir/made" "$heir/run"
  own=$(tr / - <<< "$ROOT")
  if [[ -f $ROOT/made/mounts ]]; then
    grep -v -- "$own$" "$ROOT/made/mounts" >> "$heir/made/mounts"
    grep -- "$own$" "$ROOT/made/mounts" > "$ROOT/made/mounts.own"; mv "$ROOT/made/mounts.own" "$ROOT/made/mounts"
  fi
  for name in links groups trees; do
    [[ ! -f $ROOT/made/$name ]] || cat "$ROOT/made/$name" >> "$heir/made/$name"
  done
  while read -r link; do
    [[ ! -d $heir$link || $(readlink "$link") != "$ROOT"/* ]] || ln -sfn "$heir$link" "$link"
  done 2>/dev/null < "$ROOT/made/links"
  for name in made/user made/python run/munged.pid; do [[ ! -f $ROOT/$name ]] || cp "$ROOT/$name" "$heir/$name"; done
  rm -f "$ROOT"/made/{user,python,groups,trees} "$ROOT/run/munged.pid"
}

node_names() { local i; for ((i = 0; i < NODES; i++)); do printf "$NODE_FORMAT\n" $((NODE_FIRST + i)); done; }

running() {
  local node
  [[ -f $ROOT/cluster.env ]] && grep -qx "SHAPE=$SHAPE" "$ROOT/cluster.env" && grep -qx "PROGRAMS=$PROGRAMS" "$ROOT/cluster.env" || return 1
  alive "$ROOT/run/mariadb.pid" mariadbd && alive "$ROOT/run/slurmdbd.pid" slurmdbd && alive "$ROOT/run/slurmctld.pid" slurmctld \
    && alive "$ROOT/run/sshd.pid" sshd || return 1
  for node in $(node_names); do alive "$ROOT/run/slurmd.$node.pid" slurmd && [[ -e $ROOT/made/devices-$node ]] || return 1; done
  mountpoint -q "$SCRATCH" || [[ -f $ROOT/made/no-limit ]] || return 1
  scontrol ping >/dev/null 2>&1
}

# mount_sized FOLDER MIB OPTIONS: a file system of its own with a size limit; else says that there is none
mount_sized() {
  mountpoint -q "$1" && return
  mkdir -p "$1"
  if mount -t tmpfs -o "size=$2m,$3" tmpfs "$1" 2>/dev/null; then echo "$1" >> "$ROOT/made/mounts"
  else echo "cluster: $1 could not be mounted and has no size limit" >&2; touch "$ROOT/made/no-limit"; return 1; fi
}
