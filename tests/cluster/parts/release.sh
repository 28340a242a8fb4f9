# Which Slurm: SLURM=22 is the machine's own (Debian 12: 22.05); 24 and 26 are those of newer Debians, each in a tree
# beside it. A row has the suite, and by how much the ports of sshd and of Slurm are moved (a cluster uses 17 to 23
# and 201 to 216 above its first). Sets PROGRAMS, the folder of the client commands, and where and on which ports that
# cluster lies unless told.
SLURM=${SLURM:-22} SUITE=''
case $SLURM in
  22) PROGRAMS=/usr/bin ;;
  24) SUITE=trixie ssh_step=20 step=400 ;;      # 24.11
  26) SUITE=forky ssh_step=4 step=25 ;;         # 26.05; the shapes' ports are 50 apart
  *) echo "cluster: no Slurm $SLURM here; 22, 24 and 26 there are" >&2; exit 2 ;;
esac
TREE=/opt/minilumi-$SUITE
if [[ $SUITE ]]; then
  PROGRAMS=$TREE/slurm
  PATH=$PROGRAMS:$PATH                     # daemons too; before the machine's own
  DEFAULT_ROOT+=$SLURM DEFAULT_SSH_PORT=$((DEFAULT_SSH_PORT + ssh_step)) DEFAULT_BASE=$((DEFAULT_BASE + step))
fi
# Beside it, COPY=1, 2 ... is another one of the same kind, in a folder and on ports of its own.
if ((${COPY:=0})); then
  ((COPY < 40)) || { echo "COPY=$COPY: its ports would be above 65535; take 1 to 39" >&2; exit 1; }
  DEFAULT_ROOT+=-$COPY DEFAULT_SSH_PORT=$((DEFAULT_SSH_PORT + 40 * COPY)) DEFAULT_BASE=$((DEFAULT_BASE + 800 * COPY))
fi
