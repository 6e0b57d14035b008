# Kills every process that a command started, whatever session or parent it has now.
#
# Arguments: OWN BEFORE...; PID:START tokens: OWN (comma-separated) is the command's supervisor, BEFORE what was there
# before it. Children of the latter (a service's workers) are spared, except what was orphaned to the init process.
# stdout: `clean KILLS` once nothing is left.
declare -A own=() before=() parents=() named=() states=()
for item in ${1//,/ }; do own[$item]=1; done
shift
for item; do before[$item]=1; done

spared() {
  local ancestor=${parents[$1]}
  while [[ ${ancestor:-0} != [01] ]]; do
    local name=${named[$ancestor]-}
    [[ ! $name || ${own[$name]-} ]] && return 1
    [[ ${before[$name]-} ]] && return 0
    ancestor=${parents[$ancestor]-}
  done
  return 1
}

round=0
while ((SECONDS < 25)); do
  parents=() named=() candidates=() victims=() running=()
  for directory in /proc/[0-9]*; do
    pid=${directory#/proc/}
    look "$pid" || continue
    parents[$pid]=$ppid named[$pid]=$token states[$pid]=$state
    [[ $pid == 1 || $pid == "$$" || $state == [ZX] || ${own[$token]-} || ${before[$token]-} ]] || candidates+=("$pid")
  done
  for pid in "${candidates[@]}"; do
    spared "$pid" && continue
    victims+=("$pid")
    [[ ${states[$pid]} == T ]] || running+=("$pid")
  done
  if ((${#victims[@]} == 0)); then
    oom_kills
    echo "clean $kills"
    exit 0
  fi
  # Stopped before they are killed, since a stopped one makes no others: so this ends with a fork bomb as well. One that
  # cannot be stopped, because it waits for the kernel, dies as soon as that is over.
  if ((${#running[@]} && round++ < 40)); then
    kill -STOP "${running[@]}" 2>/dev/null
  else
    kill -9 "${victims[@]}" 2>/dev/null
    pause 0.005
  fi
done
exit 1
