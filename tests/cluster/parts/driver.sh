# What the driver of the GPUs says on each node: files, as the kernel shows them, in a folder that the node's
# processes see in the driver's place. A test changes them there to make a node faulty; `up` makes them anew.
#   AMD (DRIVER=kfd): /sys/class/kfd/kfd/topology/nodes: the CPUs' NUMA domains first, then a node for each GPU
#   NVIDIA (DRIVER=nvidia): /proc/driver/nvidia/gpus/ADDRESS/information

# driver_place: where the node's folder is seen, and empty where the shape has no driver
driver_place() { case $DRIVER in kfd) echo /sys/class ;; nvidia) echo /proc/driver ;; esac; }

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
      at=$folder/nvidia/gpus/0000:$bus:00.0; mkdir -p "$at"
      printf '%s\n' "Model: $(printf '\t\t') NVIDIA H100" "GPU UUID: $(printf '\t') GPU-5ca1ab1e-0000-0000-0000-00000000000$number" \
        "Bus Location: $(printf '\t') 0000:$bus:00.0" "Device Minor: $(printf '\t') $number" > "$at/information"
    fi
    number=$((number + 1))
  done
  chmod -R a+rX "$folder"/kfd "$folder"/nvidia 2>/dev/null || true
}
