# What the driver of the GPUs says on each node: files, as the kernel shows them, in a folder that the node's
# processes see in the driver's place. A test changes them there to make a node faulty; `up` makes them anew.
#   AMD (DRIVER=kfd): /sys/class/kfd/kfd/topology/nodes: the CPUs' NUMA domains first, then a node for each GPU
#   NVIDIA (DRIVER=nvidia): /proc/driver/nvidia/gpus/ADDRESS/information
# Beside them what the kernel itself says of a node: its memory domains and their cores (/sys/devices/system/node),
# and of each GPU on the PCI bus which domain and which cores are near to it (/sys/bus/pci/devices/ADDRESS).
# A shape without GPU_NUMA has a kernel that does not know (-1).

# driver_place: where the node's folder is seen, and empty where the shape has no driver
driver_place() { case $DRIVER in kfd) echo /sys/class ;; nvidia) echo /proc/driver ;; esac; }

# cpus_of DOMAIN: the CPUs of a memory domain as the kernel lists them, the second threads behind all first ones
cpus_of() {
  local cores=$((SOCKETS * CORES_PER_SOCKET)) t each list=''
  each=$((cores / NUMA_DOMAINS))
  for ((t = 0; t < THREADS_PER_CORE; t++)); do
    list+=${list:+,}$((t * cores + $1 * each))-$((t * cores + ($1 + 1) * each - 1))
  done
  echo "$list"
}

# make_devices NODE: the folders $ROOT/nodes/NODE/domains and $ROOT/nodes/NODE/pci
make_devices() {
  local folder=$ROOT/nodes/$1 d bus at vendor=0x10de near
  read -ra near <<< "${GPU_NUMA:-}"
  [[ $DRIVER != kfd ]] || vendor=0x1002
  mkdir -p "$folder/domains" "$folder/pci"; rm -rf "$folder"/domains/* "$folder"/pci/*   # the folders are mounted
  for ((d = 0; d < NUMA_DOMAINS; d++)); do mkdir "$folder/domains/node$d"; cpus_of $d > "$folder/domains/node$d/cpulist"; done
  echo "0-$((NUMA_DOMAINS - 1))" | tee "$folder/domains/online" "$folder/domains/possible" "$folder/domains/has_cpu" > "$folder/domains/has_memory"
  d=0
  for bus in $GPU_BUS; do
    [[ $bus == *:* ]] || bus=0000:$bus
    at=$folder/pci/$bus:00.0; mkdir "$at"
    echo 0x030200 > "$at/class"; echo $vendor > "$at/vendor"; echo "${near[d]:--1}" > "$at/numa_node"
    if [[ ${near[d]:-} ]]; then cpus_of "${near[d]}"; else echo "0-$((SOCKETS * CORES_PER_SOCKET * THREADS_PER_CORE - 1))"; fi > "$at/local_cpulist"
    d=$((d + 1))
  done
  chmod -R a+rX "$folder/domains" "$folder/pci"
}

# make_driver NODE: the folder of a healthy node, in $ROOT/nodes/NODE/driver
make_driver() {
  local folder=$ROOT/nodes/$1/driver number=0 bus at
  mkdir -p "$folder"; chmod 755 "$ROOT/nodes" "$ROOT/nodes/$1" "$folder"
  if [[ $DRIVER == kfd ]]; then
    # The other classes are links to the devices, which lead there from this place too, and files for root.
    [[ -d $folder/kfd ]] || cp -a /sys/class/. "$folder/" 2>/dev/null || true
    rm -rf "$folder/kfd"
    for ((; number < NUMA_DOMAINS; number++)); do
      at=$folder/kfd/kfd/topology/nodes/$number; mkdir -p "$at"
      echo 0 > "$at/gpu_id"; printf '%s\n' 'cpu_cores_count 32' 'simd_count 0' 'location_id 0' 'domain 0' > "$at/properties"
    done
  else
    rm -rf "$folder/nvidia"
  fi
  for bus in $GPU_BUS; do
    if [[ $DRIVER == kfd ]]; then
      at=$folder/kfd/kfd/topology/nodes/$number; mkdir -p "$at"
      echo $((51000 + number)) > "$at/gpu_id"
      printf '%s\n' 'cpu_cores_count 0' 'simd_count 440' 'gfx_target_version 90010' "location_id $((16#$bus << 8))" 'domain 0' \
        "drm_render_minor $((124 + number))" "unique_id $((16#5ca1ab1e0000 + number))" > "$at/properties"
    else
      [[ $bus == *:* ]] || bus=0000:$bus     # with the PCI domain where that is another one
      at=$folder/nvidia/gpus/$bus:00.0; mkdir -p "$at"
      printf '%s\n' "Model: $(printf '\t\t') $GPU_MODEL" "GPU UUID: $(printf '\t') GPU-5ca1ab1e-0000-0000-0000-00000000000$number" \
        "Bus Location: $(printf '\t') $bus:00.0" "Device Minor: $(printf '\t') $number" > "$at/information"
    fi
    number=$((number + 1))
  done
  chmod -R a+rX "$folder"/kfd "$folder"/nvidia 2>/dev/null || true
}
