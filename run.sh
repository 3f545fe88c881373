#!/usr/bin/env bash
# Sets up cobasis in .venv and runs it; `./run.sh` alone lists the words.
# Kept to what bash 3.2 knows, so that macOS can run it, but it was never tried there.
set -euo pipefail
here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
venv=$here/.venv

words="./run.sh demo [OPTIONS]     the whole round on real data: alone, together, pooled
./run.sh test [--slow]      all checks and tests; --slow: the longest as well
./run.sh test ARGS          only 'pytest ARGS'
./run.sh check              the static checks alone: ruff, mypy, import-linter
./run.sh bench [--quick]    measures speed and memory against the goals; see bench --help
./run.sh experiment NAME    measures a table or figure of the papers, or all: see --help
./run.sh wheelhouse [DIR]   fills DIR with all it takes to install without a network
./run.sh lock [--upgrade]   for maintainers: writes the requirements*.lock files anew
./run.sh ANYTHING ELSE      is 'cobasis ANYTHING ELSE'; try ./run.sh --help"

# To stderr, so that `./run.sh demo --json` prints JSON and nothing else.
say() { printf 'run.sh: %s\n' "$*" >&2; }
give_up() { say "$*"; exit 2; }

quietly() { # runs a command and, only if it fails, shows what it had to say
    local output
    output=$("$@" 2>&1) || { printf '%s\n' "$output" >&2; return 1; }
}

find_python() { # prints the Python to build on; COBASIS_PYTHON, where set, is the only candidate
    set -- python3.11 python3 python3.12 python3.13 python3.14
    [ -z "${COBASIS_PYTHON:-}" ] || set -- "$COBASIS_PYTHON"
    local python
    for python; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$python"
            return
        fi
    done
    give_up "found no Python 3.11 or newer (tried: $*). On Debian 12, run 'sudo apt-get install" \
        "python3.11 python3.11-venv', or name a Python in COBASIS_PYTHON. Then run this again."
}

make_venv() { # make_venv PYTHON DIR
    local package
    if ! "$1" -c 'import ensurepip, venv' 2>/dev/null; then # Debian ships these apart
        package=python$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            say "fetching $package with apt-get"
            export DEBIAN_FRONTEND=noninteractive
            quietly apt-get -q update || true # a list that is at hand may do
            quietly apt-get -q -y --no-install-recommends install "$package" || true
        fi
        "$1" -c 'import ensurepip, venv' 2>/dev/null || give_up "$1 cannot make virtual" \
            "environments. Run 'sudo apt-get install $package', then run this again."
    fi
    quietly "$1" -m venv --clear "$2" || give_up "$1 could not make $2 (see above)."
}

pip() { quietly "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
sha256() { sha256sum 2>/dev/null || shasum -a 256; }

# set_up LOCK...: brings .venv to these locks; where it is there already, that costs milliseconds.
# .venv/.whole says where and on what the venv was built. It is away while pip works, so a venv
# that was left half done, or was moved along with its folder, is built again from nothing.
set_up() {
    local lock stamp python whole="$here ${COBASIS_PYTHON:-}"
    if [ ! -x "$venv/bin/python" ] || [ "$(cat "$venv/.whole" 2>/dev/null)" != "$whole" ]; then
        python=$(find_python)
        make_venv "$python" "$venv"
    fi
    for lock; do
        stamp=$(cat "$here/$lock" "$here/pyproject.toml" | sha256)
        [ "$(cat "$venv/.$lock" 2>/dev/null)" != "$stamp" ] || continue
        say "setting up .venv from $lock (first time, about a minute)"
        rm -f "$venv/.whole"
        # Wheels only: building a package would fetch and run tools that no hash here vouches for.
        # Python compiles the third of the modules that is used on its first use.
        if ! pip install --no-compile --require-hashes --only-binary :all: -r "$here/$lock" ||
            ! (cd "$here" && pip install --no-deps --no-build-isolation -e .); then
            give_up "set-up did not finish (see above); the same command tries again."
        fi
        printf '%s\n' "$stamp" >"$venv/.$lock"
        printf '%s\n' "$whole" >"$venv/.whole"
    done
}

check() {
    "$venv/bin/ruff" check &&
        "$venv/bin/ruff" format --check &&
        "$venv/bin/mypy" &&
        "$venv/bin/lint-imports" --no-logo
}

check_and_test() { # pytest comes last, so that its summary closes the output
    local documenting package
    # Every page, and read again where it or what it is made of has changed; nothing is written.
    local checked="-b dummy -a -d .venv/docs -t undrawn -D html_theme=basic"
    scratch=$(mktemp -d)
    # on another core, as long as mypy takes; with --slow the site as it is read, charts and theme
    "$venv/bin/python" -m sphinx -W -q $([ $# -gt 0 ] || echo "$checked") docs "$scratch" &
    documenting=$!
    trap 'kill '"$documenting"' 2>/dev/null || true; rm -rf "$scratch"' EXIT
    check || exit 1
    wait "$documenting" || { rm -rf "$venv/docs"; exit 1; } # what was read is warned of once
    "$venv/bin/python" -m pytest -n 2 --dist loadscope --no-loadscope-reorder \
        --basetemp "$scratch/tests" $([ $# -eq 0 ] || echo --cov --cov-report=) "$@"
    for package in $([ $# -eq 0 ] || echo linalg algorithms protocol); do
        printf 'lines and branches of %s that tests reach, in %%: ' "$package"
        "$venv/bin/python" -m coverage report --format=total --precision=1 --fail-under=95 \
            --include="*/cobasis/$package/*"
    done
    times >"$scratch/times" # its last line: minutes and seconds of all that ran, user and system
    tail -n 1 "$scratch/times" | tr 'ms' '  ' |
        awk '{ printf "processor time: %.1f minutes\n", $1 + $3 + ($2 + $4) / 60 }'
}

wheelhouse() { # filled beside DIR and then renamed: a folder of that name is never half full
    local dir=${1:-wheelhouse} wheel name version
    dir=${dir%/}
    rmdir "$dir" 2>/dev/null || true
    [ ! -e "$dir" ] || give_up "$dir is there already; remove it or name another folder."
    say "filling $dir (about a minute)"
    rm -rf "$dir.part"
    mkdir -p "$dir.part"
    pip download --require-hashes --only-binary :all: -d "$dir.part" -r "$here/requirements.lock"
    pip wheel --no-deps --no-build-isolation -w "$dir.part" "$here"
    for wheel in "$dir.part"/*.whl; do
        IFS=- read -r name version _ <<<"${wheel##*/}"
        printf '%s==%s --hash=sha256:%s\n' "$name" "$version" "$(sha256 <"$wheel" | cut -d' ' -f1)"
    done >"$dir.part/requirements.txt"
    mv "$dir.part" "$dir"
    printf '%s MB, for this platform and Python. To install:\n' "$(du -sm "$dir" | cut -f1)"
    printf 'pip install --no-index --find-links %q --require-hashes -r %q\n' "$dir" \
        "$dir/requirements.txt"
}

write_locks() { # no addresses in them: where packages come from is each machine's own setting
    local python
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    python=$(find_python)
    make_venv "$python" "$scratch"
    quietly "$scratch/bin/python" -m pip install uv
    set -- "$scratch/bin/uv" pip compile pyproject.toml --quiet --universal --python-version 3.11 \
        --only-binary :all: --generate-hashes --no-strip-extras --no-emit-index-url \
        --no-annotate --no-header --group build "$@"
    "$@" -o requirements.lock
    "$@" -o requirements-test.lock --group test -c requirements.lock
    "$@" -o requirements-experiments.lock --extra experiments -c requirements.lock
}

[ $# -gt 0 ] || { printf '%s\n' "$words" >&2; exit 2; }
case $1 in
    test | check)
        set_up requirements.lock requirements-test.lock
        cd "$here"
        # pytest's workers are enough threads
        export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 POLARS_MAX_THREADS=1
        unset PYTHONDONTWRITEBYTECODE # or each of all these processes compiles what it imports
        case $* in
            check) check && exec "$venv/bin/python" tests/sizes.py ;;
            test) check_and_test ;;
            'test --slow') check_and_test -m 'soak or not soak' ;;
            *) exec "$venv/bin/python" -m pytest "${@:2}" ;;
        esac ;;
    bench)
        set_up requirements.lock requirements-test.lock
        cd "$here"
        exec "$venv/bin/python" -m benchmarks "${@:2}" ;;
    experiment)
        case ${2:-} in
            all | -*) ;;
            *) [ -f "$here/experiments/studies/${2:-}.py" ] ||
                give_up "${2:+no study is called '$2'. }Name a study:" \
                    $(cd "$here/experiments/studies" && ls [!_]*.py | sed 's/\.py$//') all ;;
        esac
        set_up requirements.lock requirements-experiments.lock
        cd "$here"
        exec "$venv/bin/python" -m experiments "${@:2}" ;;
    wheelhouse)
        set_up requirements.lock
        wheelhouse "${@:2}" ;;
    lock)
        cd "$here"
        write_locks "${@:2}" ;;
    *)
        set_up requirements.lock
        exec "$venv/bin/cobasis" "$@" ;;
esac
