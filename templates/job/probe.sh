#!/bin/sh
# Measures what one rank can use. It takes the program's place in the launch, so that srun,
# container and launcher are the same, and writes one line of JSON to $PROOF_DIR.
# It never fails: a rank without a line was not measured.
umask 077
# If RANK is not set: the variable of Open MPI, of Hydra (MPICH, Intel MPI), of srun, in this order, because
# mpirun's daemons are srun's tasks.
rank=${RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}}
local_rank=${LOCAL_RANK:-${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-0}}}}
# torchrun's --virtual-local-rank gives all ranks the number 0, each with its own GPU; they fill one node after another.
case ${TORCHELASTIC_RUN_ID+torchrun}:$rank:${LOCAL_WORLD_SIZE:-0} in
  torchrun:*[!0-9:]* | torchrun::* | *:0 | :*) ;;
  *) local_rank=$((rank % LOCAL_WORLD_SIZE)) ;;
esac
case $rank:$local_rank in :* | *: | *[!0-9:]*) exit 0 ;; esac
node=${SLURM_NODEID:-0}
# Open MPI's daemons are a step that excludes the first node, whose ranks belong to no step.
case ${OMPI_COMM_WORLD_RANK:-x}:${OMPI_COMM_WORLD_LOCAL_SIZE:-x} in
  *[!0-9:]* | *:0) ;;
  *) node=$((OMPI_COMM_WORLD_RANK / OMPI_COMM_WORLD_LOCAL_SIZE)) ;;
esac
last=$((${SLURM_JOB_NUM_NODES:-1} - 1))
# On more than 16 nodes, only the first and the last are measured.
if [ "$last" -ge 16 ] && [ "$node" -ne 0 ] && [ "$node" -ne "$last" ]; then exit 0; fi
# taskset queries the kernel; /proc/self/status would show what the cgroup once allowed.
cores=$(taskset -cp $$ 2>/dev/null | sed 's/^.*: *//')
# Unset means all GPUs (or unknown), empty means none. HIP numbers the GPUs that ROCr leaves.
gpus=${ROCR_VISIBLE_DEVICES-unset}
within=${HIP_VISIBLE_DEVICES-${CUDA_VISIBLE_DEVICES-unset}}
if [ "$gpus" = unset ]; then
  gpus=$within
elif [ "$within" != unset ] && [ "$within" != "$gpus" ]; then
  case $within in
    *[!0-9,]*) gpus=$within ;;
    *)
      seen=
      for index in $(printf '%s' "$within" | tr , ' '); do
        one=$(printf '%s,' "$gpus" | cut -d, -f "$((index + 1))")
        [ -n "$one" ] || break
        seen=$seen,$one
      done
      gpus=${seen#,}
      ;;
  esac
fi
case $gpus in unset) gpus= ;; '' | -1*) gpus=none ;; esac
# What the driver reports, in the order in which the runtimes number GPUs: $all has ADDRESS=UUID for each that
# this rank may open. A device file that refuses belongs to another job; a missing one means nothing.
all= driver=
opens() { [ ! -e "$1" ] || (: <"$1") 2>/dev/null; }
# AMD: the kernel's topology, in whose order ROCr finds its GPUs. A CPU has gpu_id 0; an unreadable
# entry is a GPU that this job does not have. location_id is bus << 8 | device << 3 | function.
nodes=/sys/class/kfd/kfd/topology/nodes
number=0
while [ -d "$nodes/$number" ]; do
  at=$nodes/$number number=$((number + 1)) driver=amd
  opens /dev/kfd && { read -r id <"$at/gpu_id"; } 2>/dev/null && [ "$id" != 0 ] && [ -r "$at/properties" ] || continue
  domain=0 location=0 minor=none unique=0
  while read -r name value; do
    case $name:$value in
      *:*[!0-9]*) ;;
      domain:?*) domain=$value ;;
      location_id:?*) location=$value ;;
      drm_render_minor:?*) minor=$value ;;
      unique_id:?*) unique=$value ;;
    esac
  done <"$at/properties"
  opens "/dev/dri/renderD$minor" || continue
  all="$all $(printf '%04x:%02x:%02x.%x=GPU-%016x' "$domain" $((location >> 8 & 255)) \
    $((location >> 3 & 31)) $((location & 7)) "$unique")"
done
# NVIDIA: a folder for each GPU of the node, sorted by address; CUDA numbers equal GPUs like this.
for at in /proc/driver/nvidia/gpus/*/information; do
  [ -r "$at" ] || continue
  driver=nvidia minor=none uuid=
  while IFS=: read -r name value; do
    for value in $value; do :; done
    case $name in *UUID*) uuid=$value ;; 'Device Minor') minor=$value ;; esac
  done <"$at"
  opens "/dev/nvidia$minor" || continue
  address=${at%/information}
  all="$all ${address##*/}=$uuid"
done
# The GPUs of $all that the variables leave, and the one that this rank uses: the only one, or that of
# its local rank. As in the runtimes, an entry that is not a GPU ends the list.
devices= device=
if [ -n "$driver" ]; then
  tokens=$(printf '%s' "$gpus" | tr , ' ')
  if [ -z "$gpus" ]; then
    for one in $all; do devices="$devices ${one%%=*}"; done
  fi
  for token in $tokens; do
    found= place=0
    for one in $all; do
      case $token in
        *[!0-9]*) case ${one#*=} in "$token"*) found=${one%%=*} ;; esac ;;
        *) [ "$place" != "$token" ] || found=${one%%=*} ;;
      esac
      place=$((place + 1))
    done
    [ -n "$found" ] || break
    devices="$devices $found"
  done
  # A part of a GPU (MIG) does not have its own address.
  case $gpus in *MIG*) devices= driver= ;; esac
  place=0
  for one in $devices; do
    [ "$place" != "$local_rank" ] || device=$one
    place=$((place + 1))
  done
  [ "$place" != 1 ] || device=$one
  devices=$(printf '%s' "${devices# }" | tr ' ' ,)
  [ -n "$devices" ] || [ -z "$driver" ] || devices=none
fi
clean() { printf '%s' "$1" | tr -cd 'A-Za-z0-9._,:-'; }
# If all nodes are one machine (lumitui's own srun), LUMITUI_NODE names this one.
host=$(clean "${LUMITUI_NODE:-$(uname -n)}")
line=$(printf '{"rank": %d, "local_rank": %d, "host": "%s", "cores": "%s", "gpus": "%s", "devices": "%s", "device": "%s"}' \
  "$rank" "$local_rank" "$host" "$(clean "$cores")" "$(clean "$gpus")" "$(clean "$devices")" "$(clean "$device")")
# A unique name: if two processes claim the same rank, both must show.
name=$rank.$host.$$
printf '%s\n' "$line" > "$PROOF_DIR/.$name" && mv "$PROOF_DIR/.$name" "$PROOF_DIR/rank-$name"
exit 0
