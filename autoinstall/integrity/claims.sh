# Prints which record names what at the top of the directories that are its arguments, as lines of
# DIRECTORY <tab> RECORD <tab> NAME. Ends with `done`; without it the answer is incomplete.
set -o pipefail
for site; do
    /usr/bin/find "$site" -maxdepth 2 \( -name RECORD -o -name installed-files.txt \) -exec awk -v site="$site" '
        { name = $0; sub(/^"/, "", name) }
        FILENAME ~ /installed-files.txt$/ { sub(/^\.\.\//, "", name) }
        { sub(/[\/,].*/, "", name); if (!seen[FILENAME, name]++) print site "\t" FILENAME "\t" name }' {} + || exit
    [ ! -d /var/lib/dpkg/info ] ||
        /usr/bin/find /var/lib/dpkg/info -maxdepth 1 -name '*.list' -exec awk -v site="$site" '
            BEGIN { top = site "/" }
            index($0, top) == 1 {
                name = substr($0, length(top) + 1); sub(/\/.*/, "", name)
                if (!seen[name]++) print site "\t" FILENAME "\t" name
            }' {} + || exit
    conda=${site%%/lib/python*}/conda-meta
    [ ! -d "$conda" ] ||
        /usr/bin/find "$conda" -maxdepth 1 -name '*.json' -exec awk -v site="$site" '
            match($0, /site-packages\/[^\/"]+/) {
                name = substr($0, RSTART + 14, RLENGTH - 14)
                if (!seen[name]++) print site "\t" FILENAME "\t" name
            }' {} + || exit
done
echo "done"
