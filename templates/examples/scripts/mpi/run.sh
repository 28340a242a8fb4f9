#!/bin/sh
# Compiles the program on the first rank, then becomes it on every rank. MPICC names the compiler's
# wrapper: mpicc with OpenMPI, MPICH and Intel MPI, cc with Cray's compilers.
program=$RUN_DIR/pi
if [ "$RANK" = 0 ]; then
  "${MPICC:-mpicc}" -O2 -o "$program.new" "${0%/*}/pi.c" -lm || { echo "mpicc failed: are the modules of the job loaded?" >&2; exit 2; }
  mv "$program.new" "$program-$MASTER_PORT"
fi
waited=0
until [ -x "$program-$MASTER_PORT" ]; do
  waited=$((waited + 1))
  [ "$waited" -le 120 ] || { echo "Rank $RANK has waited two minutes for $program-$MASTER_PORT." >&2; exit 2; }
  sleep 1
done
exec "$program-$MASTER_PORT" "$@"
