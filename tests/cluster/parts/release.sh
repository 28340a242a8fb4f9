# Which Slurm: SLURM=22 is the machine's own (Debian 12: 22.05), SLURM=24 is Debian 13's 24.11 in a tree beside it.
# Sets PROGRAMS, the folder of the client commands, and where and on which ports that cluster lies unless told.
SLURM=${SLURM:-22} TRIXIE=${TRIXIE:-/opt/minilumi-trixie}
case $SLURM in
  22) PROGRAMS=/usr/bin ;;
  24) PROGRAMS=$TRIXIE/slurm
      PATH=$PROGRAMS:$PATH                     # daemons too; before the machine's own
      DEFAULT_ROOT+=24 DEFAULT_SSH_PORT=$((DEFAULT_SSH_PORT + 20)) DEFAULT_BASE=$((DEFAULT_BASE + 400)) ;;
  *) echo "cluster: no Slurm $SLURM here; 22 and 24 there are" >&2; exit 2 ;;
esac
# Beside it, COPY=1, 2 ... is another one of the same kind, in a folder and on ports of its own.
if ((${COPY:=0})); then
  ((COPY < 40)) || { echo "COPY=$COPY: its ports would be above 65535; take 1 to 39" >&2; exit 1; }
  DEFAULT_ROOT+=-$COPY DEFAULT_SSH_PORT=$((DEFAULT_SSH_PORT + 40 * COPY)) DEFAULT_BASE=$((DEFAULT_BASE + 800 * COPY))
fi
