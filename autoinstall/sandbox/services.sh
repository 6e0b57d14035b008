# What the start script of an environment is made of; the calls that follow it are generated from its services.
log_directory=/var/log/autoinstall
pid_directory=/run/autoinstall

# started PID: prints its start time; fails where there is no such process.
started() {
  local line
  { IFS= read -r -d '' line <"/proc/$1/stat"; } 2>/dev/null
  [[ ${line-} ]] || return 1
  set -- ${line##*) }
  [[ $1 != [ZX] ]] && echo "${20}"
}

# is_running NAME: whether the process that its pid file names is still the same one.
is_running() {
  local pid since
  { read -r pid since <"$pid_directory/$1.pid"; } 2>/dev/null || return 1
  [[ $(started "$pid") == "$since" ]]
}

# forget_the_dead: removes pid files and X locks that a process which is gone has left.
forget_the_dead() {
  local file pid
  shopt -s nullglob
  for file in /run/*.pid /run/*/*.pid /tmp/*.pid /tmp/.X*-lock; do
    read -r pid _ <"$file" || [[ ${pid-} ]] || continue
    [[ $pid =~ ^[0-9]+$ && ! -d /proc/$pid ]] && rm -f -- "$file"
  done
  shopt -u nullglob
}

# start_service NAME USER COMMAND
start_service() {
  local name=$1 user=$2 command=$3 log=$log_directory/$1.log
  mkdir -p "$log_directory" "$pid_directory"
  service_pid=
  is_running "$name" && return 0
  local -a as=()
  if [[ $user != "$(id -un)" && $user != "$(id -u)" ]]; then
    local home
    home=$(getent passwd "$user" | cut -d: -f6)
    as=(env "HOME=${home:-/}" "USER=$user" "LOGNAME=$user" runuser -u "$user" --)
  fi
  : >"$log"
  (
    cd /workspace 2>/dev/null || cd /
    exec setsid nohup "${as[@]}" bash -c "$command" </dev/null >>"$log" 2>&1
  ) &
  service_pid=$!
  echo "$service_pid $(started "$service_pid")" >"$pid_directory/$name.pid"
}

probe_tcp() {
  local host=127.0.0.1 port=$1
  [[ $1 == *:* ]] && host=${1%:*} port=${1##*:}
  timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port"
}

probe_http() {
  local url=$1 status
  [[ $url == *://* ]] || url=http://$url
  if command -v curl >/dev/null; then
    status=$(curl --silent --insecure --noproxy '*' --max-time 5 --output /dev/null --write-out '%{http_code}' "$url")
  else
    local rest=${url#*://} path=/
    [[ $rest == */* ]] && path=/${rest#*/}
    local host=${rest%%/*} port=80
    [[ $host == *:* ]] && port=${host##*:} host=${host%:*}
    status=$(timeout 5 bash -c '
      exec 3<>"/dev/tcp/$0/$1" || exit
      printf "GET %s HTTP/1.0\r\nHost: %s\r\nConnection: close\r\n\r\n" "$2" "$0" >&3
      read -r _ status _ <&3 && echo "$status"' "$host" "$port" "$path")
  fi
  [[ $status =~ ^[0-9]+$ ]] && ((10#$status >= 100 && 10#$status < 500))
}

probe_command() {
  (cd /workspace 2>/dev/null || cd /; timeout 30 bash -c "$1" </dev/null)
}

# wait_ready NAME KIND TARGET SECONDS: waits for the probe; on failure names the service and shows the end of its log.
wait_ready() {
  local name=$1 kind=$2 target=$3 seconds=$4 why="not ready after $4 s ($2 probe: $3)"
  local end=$((${EPOCHREALTIME/[.,]/} + seconds * 1000000)) wait=0.05
  while true; do
    "probe_$kind" "$target" >/dev/null 2>&1 && return 0
    if [[ ${service_pid-} ]] && ! started "$service_pid" >/dev/null; then
      # One that puts itself into the background ends well, and may yet become ready.
      local status=0
      wait "$service_pid" || status=$?
      service_pid=
      if ((status)); then why="it ended with status $status"; break; fi
    fi
    ((${EPOCHREALTIME/[.,]/} >= end)) && break
    sleep "$wait"
    wait=0.25
  done
  echo "autoinstall: service $name is not ready: $why" >&2
  [[ -s $log_directory/$name.log ]] && tail -c 4000 "$log_directory/$name.log" >&2
  return 69
}
