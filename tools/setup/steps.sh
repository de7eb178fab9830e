# SPDX-License-Identifier: Apache-2.0
# Sourced by dev and tools/setup.sh: long steps with a number, progress, time, and a log that is named
# when the step fails.
#
#   steps_total N            how many steps will follow
#   step LOG TITLE COMMAND…  runs COMMAND with its output in LOG

steps_total() {
  step_number=0
  step_total=$1
}

# "1.21.0 [12/40]": ninja's counter in the last line of the log, when there is one.
step_counter() {
  tail -c 4000 "$1" 2>/dev/null | grep -o '^\[[0-9]*/[0-9]*\]' | tail -n 1 || true
}

step() {
  local log=$1 title=$2 started=$SECONDS pid status=0 shown=0 head
  shift 2
  step_number=$((step_number + 1))
  head="[$step_number/$step_total] $title ..."
  mkdir -p "$(dirname "$log")"
  # errexit is off in a function that is called in a condition; a subshell with its own keeps it on.
  (
    set -euo pipefail
    "$@"
  ) >"$log" 2>&1 </dev/null &
  pid=$!
  if [ -t 2 ]; then
    while kill -0 "$pid" 2>/dev/null; do
      printf '\r\033[K%s %d s  %s' "$head" $((SECONDS - started)) "$(step_counter "$log")" >&2
      sleep 0.5
    done
    wait "$pid" || status=$?
    printf '\r\033[K' >&2
  else
    # Without a terminal, a line a minute shows that it is alive.
    while kill -0 "$pid" 2>/dev/null; do
      sleep 0.5
      if [ $((SECONDS - started - shown)) -ge 60 ]; then
        shown=$((SECONDS - started))
        printf '%s %d s so far  %s\n' "$head" "$shown" "$(step_counter "$log")" >&2
      fi
    done
    wait "$pid" || status=$?
  fi
  if [ "$status" -ne 0 ]; then
    printf '%s FAILED after %d s. The last lines of %s:\n' "$head" $((SECONDS - started)) "$log" >&2
    tail -n 25 "$log" | sed 's/^/    /' >&2
    return "$status"
  fi
  printf '%s %d s\n' "$head" $((SECONDS - started)) >&2
}
