# Runs a line ($1) in a shell ($0), then names in a file ($2) what the line left running. Without
# bubblewrap that is the process group; in it all groups are 0, and all but process 1 is left.
trap : HUP INT TERM
exec 3>&2 2>/dev/null
(exec "$0" -c "$1" 2>&3 3>&-)
code=$?
find_left() {
  found=
  for one in /proc/[0-9]*; do
    [ "$one" != /proc/1 ] && [ "$one" != /proc/$$ ] || continue
    read -r stat <"$one/stat" && set -- ${stat##*) } || continue
    [ "$1" != Z ] && { [ "$group" = 0 ] || [ "$3" = "$group" ]; } && found="$found $one"
  done
}
read -r stat </proc/$$/stat
stat=${stat##*) }; stat=${stat#* * }; group=${stat%% *}
find_left
[ -z "$found" ] || { sleep 0.2; find_left; }
[ -z "$found" ] || for one in $found; do tr '\0' ' ' <"$one/cmdline"; echo; done >"$2"
exit $code
