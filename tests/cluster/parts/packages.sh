# Installs what is missing, quietly.
need=(slurmctld slurmd slurm-client slurmdbd munge mariadb-server openssh-server openssh-client rsync lmod squashfs-tools
      gcc g++ libc6-dev python3 python3-venv python3-dev util-linux busybox tcsh btrfs-progs)
[[ $SLURM != 24 ]] || need+=(debootstrap patchelf)
missing=()
for package in $(comm -23 <(printf '%s\n' "${need[@]}" | sort) <(dpkg-query -W -f '${Status} ${Package}\n' "${need[@]}" 2>/dev/null | sed -n 's/^install ok installed //p' | sort)); do missing+=("$package"); done
if ((${#missing[@]})); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$ROOT/log/apt.log" 2>&1 || { tail -5 "$ROOT/log/apt.log" >&2; exit 1; }
fi
