# The init process of a sandbox: it reaps orphans, as bash does, waits for ever, and no signal from inside reaches it,
# so that a command which kills everything in sight ends commands only.
trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE
exec {nothing}<> <(:)
while true; do read -r -u "$nothing" _; done
