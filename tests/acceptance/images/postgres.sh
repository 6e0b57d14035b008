# As the official image: a database of POSTGRES_USER, made on the first start.
set -euo pipefail
bin=$(echo /usr/lib/postgresql/*/bin) data=/var/lib/postgresql/data
as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
chown postgres: "$data"
if [ ! -e "$data/PG_VERSION" ]; then
    echo "$POSTGRES_PASSWORD" >/tmp/password && chown postgres: /tmp/password
    as_postgres "$bin/initdb" -D "$data" -U "$POSTGRES_USER" -A scram-sha-256 --pwfile=/tmp/password >/dev/null
    rm /tmp/password
    echo "host all all all scram-sha-256" >>"$data/pg_hba.conf"
    as_postgres "$bin/pg_ctl" -D "$data" -w -o "-h '' -k /tmp" start >/dev/null
    PGPASSWORD=$POSTGRES_PASSWORD as_postgres "$bin/createdb" -h /tmp -U "$POSTGRES_USER" "$POSTGRES_DB" || true
    as_postgres "$bin/pg_ctl" -D "$data" -w stop >/dev/null
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups "$bin/postgres" -D "$data" -h '*' -k /tmp
