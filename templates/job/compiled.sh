
# ---- What a job does besides if compilers write on its nodes, after the functions above (templates/job/compiled.sh).

# lumitui_compiled LIMIT AROUND FOLDER...: unpack what an earlier job's compilers (Inductor, Triton, MIOpen) wrote into
# these folders of NODE_TMP on every node, and keep what this job's compilers write if the job succeeds. The job lasts
# LIMIT seconds. AROUND is the GPU, and what has PyTorch outside the image: other jobs compiled for another machine.
# Nothing here ends a job.
lumitui_compiled() {
  compiled_until=$(($1 - 60))
  local around=$2 gpu venv python
  IFS='|' read -r gpu venv python <<<"$2"
  shift 2
  compiled=("$@")
  # An image or an environment that was rebuilt under the same name has a different size or date.
  around+="|${SIF:-}|${LOADEDMODULES:-}|$(stat -Lc '%n %s %Y' -- ${SIF:+"$SIF"} ${venv:+"$venv"} \
    "${python%/bin/*}"/lib/python*/site-packages/torch/version.py 2>/dev/null)" || true
  around=$( (sha256sum || shasum -a 256) <<<"$around" 2>/dev/null) || true
  compiled_file=${RUN_DIR%/*/*}/compiled/${around:0:16}.tar.gz
  if [[ -s $compiled_file ]]; then
    # Unpack into a separate folder, so that nothing of a truncated archive is used. Nodes with a common disk share it.
    timeout -k 5 120 srun --overlap --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 bash -c '
      umask 077
      cd "$1" && aside=$(mktemp -d .compiled-XXXXXX) || exit
      tar -xzof "$2" -C "$aside" && touch "$2" || { rm -rf "$aside"; exit 1; }
      for folder in "$aside"/*; do
        rmdir "${folder##*/}" 2>/dev/null || true
        [[ -e ${folder##*/} ]] || mv -T "$folder" "${folder##*/}" 2>/dev/null || mkdir -p "${folder##*/}"
      done
      rm -rf "$aside"
    ' unpack "$NODE_TMP" "$compiled_file" ||
      echo "lumitui: the compiled code of earlier jobs could not be unpacked on every node; it will be compiled again." >&2
  fi
  : >"$NODE_TMP/.compiled" || true # newer files are this job's
}

# Keep what the compilers of the first node, which is this one, wrote: all of it or nothing, within limits.
lumitui_keep_compiled() {
  local most=1024 folders=() folder size store=${compiled_file%/*} part=
  if [[ -z $compiled_file ]] || ((SECONDS >= compiled_until)) || ! cd "$NODE_TMP" 2>/dev/null; then return; fi
  for folder in "${compiled[@]}"; do
    if [[ -n $(find "$folder" -type f 2>/dev/null | head -n 1) ]]; then folders+=("$folder"); fi
  done
  if ((${#folders[@]} == 0)) ||
    [[ -z $(find "${folders[@]}" -type f -newer .compiled ! -name '*.lock' 2>/dev/null | head -n 1) ]]; then return; fi
  size=$(du -cm -- "${folders[@]}" 2>/dev/null | sed -n '$s/[^0-9].*//p') || true
  if ((${size:-0} > most)); then
    echo "lumitui: the compilers wrote $size MiB, which is not kept for the next job, because the limit is $most MiB."
    return
  fi
  if mkdir -p "$store" && part=$(mktemp "$store/.new-XXXXXX") &&
    timeout -k 5 30 tar -czf "$part" --exclude='*.lock' -- "${folders[@]}" && mv -f "$part" "$compiled_file"; then
    # Keep the newest archives of other images. A killed job may have left half an archive.
    ls -t "$store"/*.tar.gz | tail -n +5 | while read -r folder; do rm -f "$folder"; done
    find "$store" -name '.new-*' -mmin +60 -exec rm -f {} + 2>/dev/null
  else
    rm -f "$part"
    echo "lumitui: compiled code could not be kept for the next job." >&2
  fi
}
