# Keeps the whole output of a command in a file, of which the host only takes the beginning and the end.
#
# bash reads this file (BASH_ENV) before the command that it was given. It runs that command itself, in a shell of its own
# and with its output through a copier, waits for the shell as the sandbox would, and leaves with its status. Without perl
# it leaves everything as it was.
# AUTOINSTALL_KEEP: FILE:SPARE:LIMIT, see keep.pl, which lies beside this file.
unset BASH_ENV
IFS=: read -r autoinstall_file autoinstall_spare autoinstall_limit <<<"$AUTOINSTALL_KEEP"
unset AUTOINSTALL_KEEP
if command -v perl >/dev/null && [[ -r ${autoinstall_file%/*}/keep.pl ]]; then
  marker=$(</proc/sys/kernel/random/uuid)
  exec 9<> <(:)
  PERL5OPT= perl "${autoinstall_file%/*}/keep.pl" \
    "$autoinstall_file" "$marker" "$autoinstall_spare" "$autoinstall_limit" </proc/self/fd/9 2>/dev/null 9>&- &
  copier=$!
  setsid bash -c "$BASH_EXECUTION_STRING" </dev/null >/proc/self/fd/9 2>&1 9>&- &
  command=$!
  exec 2>/dev/null
  wait "$command"
  status=$?
  printf '%s' "$marker" >&9
  wait "$copier"
  # Processes that live on may keep printing: somebody has to read it.
  setsid cat </proc/self/fd/9 >/dev/null 9>&- &
  disown -a
  exit "$status"
fi
unset autoinstall_file autoinstall_spare autoinstall_limit
