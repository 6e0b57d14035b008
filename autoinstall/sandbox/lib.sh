# Shell functions that the scripts of this directory share; the host puts this file in front of them.
# Builtins only, so that they work where no further process can be started.

# oom_kills: sets `kills` to the kernel's count of processes of this container killed for memory (cgroup v1 or v2).
oom_kills() {
  local file key value
  kills=0
  for file in /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events; do
    [[ -r $file ]] || continue
    while read -r key value; do
      [[ $key == oom_kill ]] && kills=$value
    done <"$file"
    return 0
  done
}

# look PID: sets `state`, `ppid` and `token` (pid:start time, since pids are used again); fails if there is none.
look() {
  local pid=$1 line=
  { IFS= read -r -d '' line <"/proc/$pid/stat"; } 2>/dev/null
  [[ $line ]] || return 1
  set -- ${line##*) }
  state=$1 ppid=$2 token=$pid:${20}
}

# tokens: sets the array `tokens` to those of every process.
tokens() {
  local directory
  tokens=()
  for directory in /proc/[0-9]*; do
    look "${directory#/proc/}" && tokens+=("$token")
  done
}

# pause SECONDS: sleeps without a process of its own.
pause() {
  [[ ${nothing-} ]] || exec {nothing}<> <(:)
  read -r -t "$1" -u "$nothing" _
}
