
# ---- What a job with GPUs does besides if the site has `gpu_readings:`, after the functions above (templates/job/gpus.sh).

# lumitui_gpus GPUS COMMAND: while the program runs, read how busy the GPUs of this node are: after 10 s, 20 s, 40 s,
# then each minute, because rocm-smi takes a second of a core. gpu_use.json has the figures of the attempt so far. If
# the command sees a different number of GPUs than the job has, as on some shared nodes, its reading is ignored.
lumitui_gpus() {
  rm -f "$RUN_DIR/gpu_use.json" || true
  (
    trap - EXIT TERM
    cd "$RUN_DIR"
    pause=10
    while sleep "$pause" && kill -0 "$$"; do
      timeout 20 sh -c "$2" || true
      echo "read $pause"
      pause=$((pause < 30 ? 2 * pause : 60))
    done | lumitui_gpu_use "$1"
  ) </dev/null >/dev/null 2>&1 &
}

# lumitui_gpu_use GPUS: add up readings: lines of nvidia-smi (index, power, used, total, use) or the JSON of
# rocm-smi, each followed by its seconds.
lumitui_gpu_use() {
  awk -F ' *, *' -v gpus="$1" -v file=gpu_use.json '
    function value(text, name,  at) {
      at = index(text, "\"" name "\": \"")
      return at ? substr(text, at + length(name) + 5) : ""
    }
    function gpu(use, used, total) {
      if (use ~ /^[0-9]/ && used ~ /^[0-9]/ && total + 0 > 0) {
        uses[++seen] = use + 0; taken[seen] = used + 0; memory = total + 0
      }
    }
    NF == 5 && $1 ~ /^[0-9]+$/ { gpu($5, $3, $4) }
    /^[{]/ {
      cards = split($0, card, /"card[0-9]+": *[{]/)
      for (i = 2; i <= cards; i++) gpu(value(card[i], "GPU use (%)"),
        value(card[i], "VRAM Total Used Memory (B)") / 1048576, value(card[i], "VRAM Total Memory (B)") / 1048576)
    }
    /^read [0-9]+$/ {
      split($0, word, " ")
      if (seen == gpus) {
        seconds += word[2]
        for (i = 1; i <= seen; i++) {
          sum += word[2] * uses[i]
          if (uses[i] < 10) low += word[2]; else if (!(i in ever)) { ever[i]; busy++ }
          if (taken[i] > peak) peak = taken[i]
        }
        printf "{\"seconds\": %d, \"gpus\": %d, \"busy\": %d, \"low\": %.4f, \"mean\": %.1f, \"used_mib\": %d, \"memory_mib\": %d}\n",
          seconds, gpus, busy, low / (gpus * seconds), sum / (gpus * seconds), peak, memory >file
        close(file)
      }
      seen = 0
    }'
}
