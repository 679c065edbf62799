# The one list of system packages: `make deps`, `make`, `make demo` and `make test` all use it.
PACKAGES := gcc make pkg-config libdnnl-dev liblua5.4-dev libncurses-dev libsqlite3-dev zlib1g-dev \
            libvterm-dev sqlite3 dataset-fashion-mnist
# Only `make lint` needs these.
LINT_PACKAGES := g++ clang clang-format lua-check shellcheck libomp-dev
