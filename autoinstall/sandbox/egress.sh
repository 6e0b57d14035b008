# Adds routing rules to a network namespace. The arguments are those for IPv4 and those for IPv6, one a line.
set -euo pipefail
v4=$1 v6=$2
# The engine's own resolver asks from within the namespace, so its name servers stay reachable, for questions alone.
while read -r word server _; do
  [[ $word == nameserver ]] || continue
  for protocol in 6 17; do
    rule="rule add pref 90 to $server ipproto $protocol dport 53 lookup main"
    if [[ $server == *:* ]]; then v6+=$'\n'${rule/$server/${server%%%*}}; else v4+=$'\n'$rule; fi
  done
done </etc/resolv.conf
printf '%s\n' "$v4" | ip -batch -
[[ ! -e /proc/net/if_inet6 ]] || printf '%s\n' "$v6" | ip -6 -batch -
