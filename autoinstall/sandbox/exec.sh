# Runs one command and ends when its shell does, whatever that left in the background.
#
# Argument: NONCE.
# stdin, each part ended by a NUL: this script; the command; NAME=VALUE pairs, which override the env file; nothing.
#   So the names and words of a command stand on its own command line only, where `pkill -f` looks for them.
#   Later, one line from the host once it has seen the end of the output.
# stdout: the command's output, then NONCE. Everything written before the shell's exit comes before it.
# stderr: lines that start with NONCE:
#   started KILLS PID:START,PID:START PID:START...   kills for memory so far; this script's own processes; all others
#   ended STATUS KILLS
nonce=$1
pairs=()
IFS= read -r -d '' command
while IFS= read -r -d '' pair && [[ $pair ]]; do pairs+=("$pair"); done
say() { printf '\n%s %s\n' "$nonce" "$*" >&2; }

# A pipe with both ends open here: the command only ever has its writing end, and never meets a broken one.
exec 9<> <(:)
tokens
cat </proc/self/fd/9 9>&- &
reader=$!
look $$ && own=$token
look "$reader" && own+=,$token
oom_kills
say started "$kills" "$own" "${tokens[*]}"

(
  exec </dev/null >/proc/self/fd/9 2>&1 9>&-
  if [[ -r /opt/autoinstall/env.sh ]]; then . /opt/autoinstall/env.sh; fi
  for pair in "${pairs[@]}"; do export "$pair"; done
  cd /workspace 2>/dev/null || cd /
  unset OLDPWD
  exec setsid bash -c "$command"
) &
wait "$!"
status=$?

printf '%s' "$nonce" >&9
oom_kills
say ended "$status" "$kills"
read -r -t 60 _
# Processes that live on may keep printing: somebody has to read it, or they would block, and later die.
setsid cat </proc/self/fd/9 >/dev/null 2>&1 9>&- &
disown -a
kill -9 "$reader" 2>/dev/null
exit "$status"
