#!/bin/sh
# Reports the facts of a compute node for its site's profile, one `key words` per line. The first rank writes them to
# $RUN_DIR/node.txt. It changes nothing else and never fails.
umask 077
[ "${RANK:-${SLURM_PROCID:-0}}" = 0 ] || exit 0
report=${RUN_DIR:-.}/node.txt
say() { printf '%s\n' "$*"; }
first() { [ ! -r "$1" ] || head -n 1 "$1" 2>/dev/null; }
limited() { if command -v timeout >/dev/null 2>&1; then timeout "$@"; else shift; "$@"; fi; }

look() {
  say host "$(uname -n)"
  say arch "$(uname -m)"
  # What Slurm knows about this node; not every site has scontrol on its nodes.
  say slurm "$(limited 20 scontrol show node -o "${SLURMD_NODENAME:-$(uname -n)}" 2>/dev/null | head -n 1)"
  # The cores of the whole job, if the kernel limits them: from control groups version 2, then version 1.
  path=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null | sed -n 's|\(/job_[0-9]*\).*|\1|p')
  [ -z "$path" ] || say job "$(first "/sys/fs/cgroup$path/cpuset.cpus.effective")"
  path=$(sed -n 's/^[0-9]*:[a-z,]*cpuset[a-z,]*://p' /proc/self/cgroup 2>/dev/null | sed -n 's|\(/job_[0-9]*\).*|\1|p')
  [ -z "$path" ] || say job "$(first "/sys/fs/cgroup/cpuset$path/cpuset.cpus")"
  for at in /sys/devices/system/node/node[0-9]*; do
    [ ! -r "$at/cpulist" ] || say domain "${at##*/node}" "$(first "$at/cpulist")"
  done
  cat /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list 2>/dev/null | sort -u | sed 's/^/threads /'
  gpus | while read -r address; do
    at=/sys/bus/pci/devices/$address
    say gpu "$address" "$(first "$at/numa_node")" "$(first "$at/local_cpulist")" "$(first "$at/vendor")"
  done
  if command -v nvidia-smi >/dev/null 2>&1; then
    limited 30 nvidia-smi --query-gpu=pci.bus_id,memory.total,mig.mode.current,name,power.draw --format=csv,noheader,nounits 2>/dev/null |
      sed 's/^/nvidia /'
  fi
  if command -v rocm-smi >/dev/null 2>&1; then
    limited 30 rocm-smi --showbus --showmeminfo vram --showproductname --csv 2>/dev/null | sed 's/^/amd /'
  fi
  for at in /sys/class/infiniband/* /sys/class/net/*; do
    [ ! -e "$at/device" ] || say nic "${at##*/}" "$(first "$at/device/numa_node")" "$(first "$at/ports/1/rate")"
  done
  for name in TMPDIR LOCAL_SCRATCH SLURM_TMPDIR SCRATCH_LOCAL LOCALSCRATCH JOBDIR LOCAL_DIR; do
    eval "path=\${$name-}"
    case $path in /*) disk "\$$name" "$path" ;; esac
  done
  for path in /tmp /local /scratch/local /localscratch /nvme /dev/shm; do disk "$path" "$path"; done
  for name in singularity apptainer enroot podman sarus shifter mpirun mpiexec python3 gcc mksquashfs module; do
    path=$(command -v "$name" 2>/dev/null) && say command "$name" "$path"
  done
  say python "$(limited 20 python3 -c 'import sys; print(sys.version.split()[0])' 2>/dev/null)"
  say torch "$(limited 60 python3 -c 'import torch; print(torch.__version__)' 2>/dev/null | tail -n 1)"
  # The images in the profile, which may exist only on login nodes.
  for path; do [ -r "$path" ] && say image yes "$path" || say image no "$path"; done
  # Three tries of 5 s: a name, its address, a port.
  say internet "$(route)"
  say done
}

# The addresses of the GPUs in the order in which the runtimes number them: AMD's by the kernel's topology, NVIDIA's
# by address; if no driver reports any, all display controllers except the board's own.
gpus() {
  number=0 nodes=/sys/class/kfd/kfd/topology/nodes found=
  while [ -d "$nodes/$number" ]; do
    at=$nodes/$number number=$((number + 1))
    [ "$(first "$at/gpu_id")" != 0 ] && [ -r "$at/properties" ] || continue
    location=$(sed -n 's/^location_id //p' "$at/properties") domain=$(sed -n 's/^domain //p' "$at/properties")
    [ -n "$location" ] || continue
    found=yes
    printf '%04x:%02x:%02x.%x\n' "${domain:-0}" $((location >> 8 & 255)) $((location >> 3 & 31)) $((location & 7))
  done
  [ -z "$found" ] || return 0
  for at in /proc/driver/nvidia/gpus/*; do
    [ ! -d "$at" ] || { found=yes && say "${at##*/}"; }
  done
  [ -z "$found" ] || return 0
  for at in /sys/bus/pci/devices/*; do
    case $(first "$at/class"):$(first "$at/vendor") in 0x0302*:* | 0x0300*:0x10de | 0x0380*:0x1002 | 0x1200*:0x1002) say "${at##*/}" ;; esac
  done
}

disk() { # disk NAME FOLDER: its file system, free KiB, and whether one can write there
  [ -d "$2" ] || return 0
  kind=$(stat -f -c %T "$2" 2>/dev/null | tr -d ' ')
  [ -w "$2" ] && write=yes || write=no
  say disk "$1" "${kind:-unknown}" "$(df -Pk "$2" 2>/dev/null | awk 'END {print $4}')" "$write" "$2"
}

route() {
  [ -z "${https_proxy-}${HTTPS_PROXY-}" ] || { say proxy && return; }
  for host in example.org example.com example.net; do
    if limited 5 bash -c ": </dev/tcp/$host/443" 2>/dev/null; then say yes && return; fi
  done
  say no
}

look "$@" >"$report.part" 2>/dev/null
mv "$report.part" "$report"
exit 0
