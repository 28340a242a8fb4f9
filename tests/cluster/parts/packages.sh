#!/usr/bin/env bash
# Installs the Debian packages that the tests and the mini cluster need and that are missing, as root on Debian or
# Ubuntu; elsewhere it says so. `make test` runs it before anything else, `up` too. Nothing missing: about 0.1 s.
set -euo pipefail
need=(slurmctld slurmd slurm-client slurmdbd munge mariadb-server openssh-server openssh-client rsync lmod squashfs-tools
      gcc g++ libc6-dev python3 python3-venv python3-dev util-linux btrfs-progs iproute2
      debootstrap patchelf                     # newer Slurms, parts/newer.sh
      tmux groff-base mandoc                   # the TUI as a person runs it; two readers of the manual page
      openmpi-bin mpich libmpich-dev           # both kinds of mpirun, by their full names; mpicc for a program in C
      busybox tcsh zsh ksh fish git procps)    # what a site's login shell may be, and what tests compare with
missing() { comm -23 <(printf '%s\n' "${need[@]}" | sort) <(dpkg-query -W -f '${Status} ${Package}\n' "${need[@]}" 2>/dev/null | sed -n 's/^install ok installed //p' | sort); }

if ! command -v dpkg-query apt-get >/dev/null || ! grep -qE '^(ID|ID_LIKE)=.*debian' /etc/os-release; then
  echo "packages: this is not Debian or Ubuntu; a test that needs a program you do not have is skipped." >&2; exit 0
fi
[[ $(missing) ]] || exit 0
if [[ $(id -u) != 0 ]]; then
  echo "packages: tests that need these are skipped (run as root to install them): $(missing | xargs)" >&2; exit 0
fi
exec 9> /run/lock/cluster-packages; flock 9    # another `up` or `make test` may install them now
mapfile -t packages < <(missing)
((${#packages[@]})) || exit 0
echo "packages: installing ${packages[*]}" >&2
log=$(mktemp)
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" > "$log" 2>&1 9>&- \
  || { tail -5 "$log" >&2; echo "packages: apt-get failed; its output is in $log" >&2; exit 1; }
rm -f "$log"
