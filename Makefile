# The commands for people and for CI. `make` alone builds. Less frequent tasks are scripts in scripts/.

PREFIX ?= /usr/local
CARGO  ?= cargo
TARGET  = $(or $(CARGO_TARGET_DIR),target)
# The directory to which the tests write their figures: how many cases they have tried.
FIGURES = $(abspath $(TARGET))/figures
# Two tests run at once on each processor, because a test spends most of its time waiting.
TEST_THREADS = $$(($$(getconf _NPROCESSORS_ONLN) * 2))
# The programs in bin are for people. They start the programs in libexec, which they look for in their own directory and
# in ../libexec/teamd.
BIN      = teamctl teamd
LIBEXEC  = teamd-shim teamd-acp teamd-mcp teamd-top
PROGRAMS = $(BIN) $(LIBEXEC)

# Builds the programs as they are installed. If the machine has a static C library, they are linked with it: then they
# start faster, and a shim needs a quarter less memory. `make STATIC=` links them in cargo's usual way.
STATIC ?= $(if $(wildcard $(shell $(CC) -print-file-name=libc.a)),-C target-feature=+crt-static)
build:
	for program in $(PROGRAMS); do \
	    $(CARGO) rustc --release --locked -p teamd-agents --bin $$program -- $(STATIC) || exit; \
	done

# Checks format, lints, the code for macOS and FreeBSD, documentation, spelling, and the licences and known
# vulnerabilities of dependencies. A warning is an error.
check:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	scripts/check-targets
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --document-private-items
	scripts/need cargo-deny
	$(CARGO) fetch --locked --quiet
	$(CARGO) fetch --locked --quiet --manifest-path fuzz/Cargo.toml
	$(CARGO) deny --offline check licenses bans sources
	scripts/check-advisories
	scripts/check-spelling

# Runs all tests, and fuzzes each parser for five seconds. Installs what the tests need: they run the real tmux, and
# other programs that write to team files. How many cases the tests have tried is written below target/figures.
test:
	scripts/need c++
	scripts/prepare-tests
	rm -rf $(FIGURES)
	$(CARGO) build --workspace --bins --locked
	FIGURES=$(FIGURES) SEEDS=5000 FOREIGN=needed RUST_TEST_THREADS=$(TEST_THREADS) \
	    $(CARGO) test --workspace --locked --no-fail-fast
	FIGURES=$(FIGURES) scripts/fuzz 5

# Tests with real agent programs, which talk to a simulated model. Not part of `make test`, because it downloads the
# programs and installs them below target/.
test-agents:
	tests/compat/run-agents

# Tests with three versions of Claude Code as teammates, on the team's host and on another one. They talk to a simulated
# model and have no network. Not part of `make test`, because it downloads them from npm. `make test-claude RUNS=3` runs
# the tests three times.
CLAUDE_VERSIONS ?= 2.1.45 2.1.158 latest
RUNS ?= 1
test-claude:
	@for word in npm unshare ip; do \
	    command -v $$word >/dev/null || { echo "test-claude: skipped, since there is no $$word"; exit 0; }; \
	done; \
	set -e; scripts/need tmux; \
	dir=$$(mkdir -p $(TARGET)/compat && cd $(TARGET)/compat && pwd)/claude; \
	tests/compat/claude/install "$$dir" $(CLAUDE_VERSIONS); \
	$(CARGO) build --workspace --bins --locked; \
	$(CARGO) test -p teamd-tests --test claude --locked --no-run; \
	TEAMD_TEST_CLAUDE="$$dir" RUNS=$(RUNS) tests/compat/offline \
	    $(CARGO) test --offline --quiet -p teamd-tests --test claude

# Runs a team of three workers from a file, and shows it in tmux: scripts/demo.
demo:
	scripts/need tmux
	$(CARGO) build --bins --locked
	scripts/demo

# Puts temporary files into memory if possible, so that figures do not depend on the disk.
IN_MEMORY = TMPDIR=$${TMPDIR:-$$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)}

# Measures the figures of docs/performance.md on this machine. With ROWS, measures only the rows that ROWS names.
bench: build
	scripts/need tmux node
	cd tests/compat/writers && npm ci --silent --ignore-scripts --no-audit --no-fund
	$(CARGO) build --release -p teamd-tests --bins --locked
	$(IN_MEMORY) $(TARGET)/release/bench $(ROWS)
	[ -n "$(ROWS)" ] || $(IN_MEMORY) $(CARGO) bench -q -p teamd-store --bench operations --locked

# Builds docs/ as a book below target/book, with every file that its pages link to at the same relative path.
BOOK  = README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE-APACHE LICENSE-MIT docs examples packaging
PAGES = $(TARGET)/book-source
book:
	scripts/need mdbook
	rm -rf $(PAGES)
	mkdir -p $(PAGES)/src
	cp docs/book.toml $(PAGES)
	cp -R $(BOOK) $(PAGES)/src
	$(CARGO) build -p teamd-agents --bin teamctl --locked
	scripts/commands-page $(TARGET)/debug/teamctl >$(PAGES)/src/docs/commands.md
	sed -e 's|](\.\./|](|' -e t -e 's|](|](docs/|' docs/SUMMARY.md | \
	    sed 's|^- \[Run files\]|- [Commands](docs/commands.md)\n&|' >$(PAGES)/src/SUMMARY.md
	mdbook build $(PAGES)

# Writes man pages and shell completions, with the teamctl that was built. `install` and `deb` need this.
SHARE = $(TARGET)/release/share
share: build
	rm -rf $(SHARE)
	$(TARGET)/release/teamctl man $(SHARE)/man
	for shell in bash zsh fish; do \
	    $(TARGET)/release/teamctl completions $$shell >$(SHARE)/teamctl.$$shell || exit; \
	done

# Installs programs, man pages and completions below PREFIX. Older releases had the programs of libexec in bin. They are
# removed from bin, because teamctl would find them first.
BELOW = $(DESTDIR)$(PREFIX)
install: share
	install -d $(BELOW)/bin $(BELOW)/libexec/teamd $(BELOW)/share/man/man1 \
	    $(BELOW)/share/bash-completion/completions $(BELOW)/share/zsh/site-functions \
	    $(BELOW)/share/fish/vendor_completions.d
	install -m 755 $(BIN:%=$(TARGET)/release/%) $(BELOW)/bin
	install -m 755 $(LIBEXEC:%=$(TARGET)/release/%) $(BELOW)/libexec/teamd
	rm -f $(LIBEXEC:%=$(BELOW)/bin/%)
	install -m 644 $(SHARE)/man/* $(BELOW)/share/man/man1
	install -m 644 $(SHARE)/teamctl.bash $(BELOW)/share/bash-completion/completions/teamctl
	install -m 644 $(SHARE)/teamctl.zsh $(BELOW)/share/zsh/site-functions/_teamctl
	install -m 644 $(SHARE)/teamctl.fish $(BELOW)/share/fish/vendor_completions.d/teamctl.fish

# Builds the Debian package below target/debian. scripts/deb-test tests it.
deb: share
	scripts/need cargo-deb
	gzip -9n $(SHARE)/man/*
	$(CARGO) deb --package teamd-agents --no-build --output $(TARGET)/debian/teamd-agents.deb

.PHONY: build check test test-agents test-claude demo bench book share install deb
