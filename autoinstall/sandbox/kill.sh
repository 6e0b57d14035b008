# Kills every process that a command started, whatever session or parent it has now.
#
# Arguments: OWN BEFORE...; PID:START tokens: OWN (comma-separated) is the command's supervisor, BEFORE what was there
# before it. Children of the latter (a service's workers) are spared, except what was orphaned to the init process.
# stdout: `clean KILLS` once nothing is left.
declare -A own=() before=() parents=() named=()
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

for ((round = 0; round < 1000; round++)); do
  parents=() named=() candidates=() victims=()
  for directory in /proc/[0-9]*; do
    pid=${directory#/proc/}
    look "$pid" || continue
    parents[$pid]=$ppid named[$pid]=$token
    [[ $pid == 1 || $pid == "$$" || $state == [ZX] || ${own[$token]-} || ${before[$token]-} ]] || candidates+=("$pid")
  done
  for pid in "${candidates[@]}"; do
    spared "$pid" || victims+=("$pid")
  done
  if ((${#victims[@]} == 0)); then
    oom_kills
    echo "clean $kills"
    exit 0
  fi
  kill -9 "${victims[@]}" 2>/dev/null
  pause 0.005
done
exit 1
