# CLOSED=yes of a shape: no machine of the cluster has a way out. up, and so every daemon and every session, runs in a
# network of its own that leads nowhere. The doors of sshd are outside (door.py): a session's connection
# comes in, and nothing goes out.
CLOSED=${CLOSED:-} NETWORK=$ROOT/run/network OUTSIDE=$ROOT/run/outside
is_network() { [[ $(stat -fc %T "$1" 2>/dev/null) == nsfs ]]; }
bind_network() { touch "$1" && mount --bind "$2" "$1"; }   # bind_network FILE NETWORK: it lasts without a process

if [[ $CLOSED && ! ${INSIDE:-} && $(id -u) == 0 ]]; then
  if [[ ${0##*/} == up && ${1:-} != --check ]] && ! is_network "$NETWORK"; then
    "$here/parts/packages.sh"
    mkdir -p "$ROOT/run"
    is_network "$OUTSIDE" || bind_network "$OUTSIDE" /proc/self/ns/net
    touch "$NETWORK"
    # Slurm listens only where an interface besides the loopback has an address; nothing is routed over this one.
    if ! unshare --net="$NETWORK" sh -ec 'ip link set lo up; ip link add one type veth peer name two
        ip addr add 192.0.2.1/32 dev one; ip link set one up; ip link set two up'; then
      echo "cluster: this machine permits no network namespaces, so the shape $SHAPE cannot be closed (CLOSED=)" >&2; exit 1
    fi
  fi
  ! is_network "$NETWORK" || exec env INSIDE=1 nsenter --net="$NETWORK" "$0" "$@"
fi
unset INSIDE

# outside COMMAND...: in the machine's own network
outside() { if [[ $CLOSED ]]; then nsenter --net="$OUTSIDE" "$@"; else "$@"; fi; }

# open_door NAME PORT HOST: sshd of HOST on 127.0.0.1:PORT with the file ssh/NAME_config
open_door() {
  local name=$1 port=$2 host=$3
  alive "$ROOT/run/$name.pid" sshd && return
  if [[ ! $CLOSED ]]; then
    unshare --uts sh -c "hostname $host && exec /usr/sbin/sshd -f $ROOT/ssh/${name}_config -E $ROOT/log/sshd.log"
  else
    outside unshare --uts sh -c "hostname $host && exec python3 $here/parts/door.py $port $ROOT/run/$name.pid \
      nsenter --net=$NETWORK /usr/sbin/sshd -i -f $ROOT/ssh/${name}_config -E $ROOT/log/sshd.log"
  fi
}
