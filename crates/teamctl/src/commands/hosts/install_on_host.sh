# Runs on the other machine, in any POSIX shell. It names the machine and waits for an archive on
# standard input. It installs the archive only if the programs in it work here.
# The whole script is one command, so that the shell has read all of it before the archive comes.
{
    umask 022
    prefix=$HOME/.local
    new=$prefix/libexec/teamd-new-$$
    old=$prefix/libexec/teamd-old
    found=$(command -v teamctl 2>/dev/null || :)
    printf 'teamd-install\t%s\t%s\t%s\t%s\n' "$(uname -s)" "$(uname -m)" "$HOME" "$found"
    result='nothing was replaced'
    fail() {
        rm -rf "$new"
        printf 'failed\t%s\n' "$1; $result"
        exit 0
    }
    mkdir -p "$prefix/bin" "$prefix/libexec/teamd" "$new" || fail "cannot create $new"
    tar -xf - -C "$new" || fail "cannot unpack the archive in $new"
    # Some versions of tar take an archive without its end. This program is the last one.
    [ -s "$new/libexec/teamd/teamd-top" ] || fail "the archive is not whole"
    version=$("$new/bin/teamctl" --version 2>&1) || fail "the programs do not run there: $version"
    rm -rf "$old"
    for file in $(cd "$new" && find . -type f | sort -r); do
        if [ -e "$prefix/$file" ]; then
            mkdir -p "$(dirname "$old/$file")" && cp -p "$prefix/$file" "$old/$file" || fail "cannot keep $prefix/$file"
        fi
    done
    result="some programs may be replaced; those before are in $old"
    for file in $(cd "$new" && find . -type f | sort -r); do
        mv -f "$new/$file" "$prefix/$file" || fail "cannot write $prefix/$file"
    done
    rm -rf "$new"
    kept=
    [ ! -d "$old" ] || kept=$old
    printf 'installed\t%s\t%s\t%s\n' "$version" "$(command -v teamctl 2>/dev/null || :)" "$kept"
    exit 0
}
