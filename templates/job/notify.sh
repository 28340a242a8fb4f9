
# ---- What a job with `notify:` does besides, after the functions above (templates/job/notify.sh).

# lumitui_notify NAME SITE AS: notify the address in the secret NAME of the job's end. A shell variable keeps it,
# which no other program sees. AS is `text` (ntfy) or `json` (Slack, Mattermost, Matrix).
lumitui_notify() {
  told=$(. "$RUN_DIR/.secrets" 2>/dev/null && printf '%s' "${!1-}") || told=
  unset "$1"
  told_site=$2 told_as=$3 goes_on=
  trap lumitui_leave EXIT
  # Without this trap, bash would end at once; with it, once srun has returned.
  [[ -n $(trap -p TERM) ]] || trap 'lumitui_exit 143' TERM
}

# lumitui_tell RC: send the notification. A chain whose job was requeued has not ended. The address is never
# printed; it goes through standard input, so that no process list shows it.
lumitui_tell() {
  set +e
  local end text type=text/plain trouble code
  if [[ -n $goes_on ]]; then return; fi
  case $1 in
    0) end='done' ;;
    85) end='stopped, with its checkpoint saved' ;;
    137) end='killed with SIGKILL: its memory may have run out' ;;
    143) end='ended early by a signal: the time limit, or a requeue' ;;
    *) end="failed with exit code $1" ;;
  esac
  if [[ -e $RUN_DIR/cancelled ]]; then end=cancelled; fi
  text="${RUN_DIR##*/} at $told_site: $end after $((SECONDS / 3600)) h $((SECONDS / 60 % 60)) min $((SECONDS % 60)) s."
  if [[ $told_as == json ]]; then type=application/json text="{\"text\": \"$text\"}"; fi
  if [[ -z $told ]]; then
    trouble='its address is missing'
  elif command -v curl >/dev/null 2>&1; then
    text=$(printf 'url = "%s"\n' "$told" |
      timeout -k 1 12 curl -q -g -s -f -o /dev/null -w '%{http_code}' --max-time 10 --proto =http,https \
        -H "Content-Type: $type" --data-raw "$text" -K - 2>/dev/null)
    code=$?
    if ((code)); then trouble="curl ended with $code"; fi
    # -f counts a redirect, which curl does not follow, as a success.
    if [[ $code == 0 && $text == 3* ]]; then trouble="its address answers with a redirect ($text)"; fi
  else
    printf '%s' "$told" | timeout -k 1 10 python3 -I -c '
import sys, urllib.request as u
class Stay(u.HTTPRedirectHandler):
    def redirect_request(self, *args): pass
request = u.Request(sys.stdin.read(), sys.argv[2].encode(), {"Content-Type": sys.argv[1]})
u.build_opener(Stay).open(request, timeout=10).close()' "$type" "$text" >/dev/null 2>&1
    code=$?
    if ((code)); then trouble="python3 ended with $code"; fi
  fi
  if [[ -n $trouble ]]; then
    echo "lumitui: the notification of the job's end was not sent: $trouble." >&2
  fi
}
