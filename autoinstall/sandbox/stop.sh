# Stops everything that runs in the sandbox, as gently as it goes, before it is committed: first the services, so that
# a database can tell its own processes, then whoever is left, then by force. Removes what would mislead the next start.
#
# Arguments: SECONDS all|named [NAME...]: how long services may take, whether others end too, and the services' names.
# stdout: `stopped 0`, or the number of those that are left.
seconds=$1 scope=$2
shift 2
declare -A family=()

# descendants PID: adds it and everything below it to `family`.
descendants() {
  local directory found=1
  family[$1]=1
  while ((found)); do
    found=0
    for directory in /proc/[0-9]*; do
      local pid=${directory#/proc/}
      [[ ${family[$pid]-} ]] && continue
      look "$pid" || continue
      [[ ${family[$ppid]-} ]] && family[$pid]=1 found=1
    done
  done
}

# others: sets `list` to every process but the init process and this one.
others() {
  local directory pid
  list=()
  for directory in /proc/[0-9]*; do
    pid=${directory#/proc/}
    [[ $pid == 1 || $pid == $$ ]] && continue
    look "$pid" && [[ $state != [ZX] ]] && list+=("$pid")
  done
}

for name; do
  read -r pid since <"/run/autoinstall/$name.pid" || continue
  look "$pid" && [[ $token == "$pid:$since" ]] || continue
  descendants "$pid"
  # A shell does not hand the signal on to what it waits for.
  read -r comm <"/proc/$pid/comm"
  if [[ $comm == @(bash|sh|dash|runuser|env) ]]; then
    for child in "${!family[@]}"; do
      look "$child" && [[ $ppid == "$pid" ]] && kill "$child"
    done
  fi
  kill "$pid"
done 2>/dev/null

for ((tick = 0; tick < seconds * 20; tick++)); do
  alive=0
  for pid in "${!family[@]}"; do
    look "$pid" && [[ $state != [ZX] ]] && alive=1
  done
  ((alive)) || break
  pause 0.05
done

if [[ $scope == named ]]; then
  list=()
  for pid in "${!family[@]}"; do look "$pid" && kill -9 "$pid" 2>/dev/null; done
  for name; do rm -f -- "/run/autoinstall/$name.pid"; done
  echo "stopped 0"
  exit 0
fi

others
if ((${#list[@]})); then
  kill "${list[@]}" 2>/dev/null
  for ((tick = 0; tick < 40; tick++)); do
    others
    ((${#list[@]})) || break
    pause 0.05
  done
  for ((tick = 0; tick < 400 && ${#list[@]}; tick++)); do
    kill -9 "${list[@]}" 2>/dev/null
    pause 0.01
    others
  done
fi
shopt -s nullglob
rm -f -- /run/*.pid /run/*/*.pid /tmp/*.pid /tmp/.X*-lock /tmp/.X11-unix/* /tmp/.s.PGSQL.*
echo "stopped ${#list[@]}"
