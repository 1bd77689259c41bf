# SPDX-License-Identifier: Apache-2.0
# completions: for bash and zsh; both read --help. A distribution may have another zshcompletiondir.
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
dist_bashcompletion_DATA = completions/mcp-python
dist_zshcompletion_DATA = completions/_mcp-python
dist_check_SCRIPTS += tests/check-completions.sh
TESTS += tests/check-completions.sh

# bash looks for a file with the program's name.
install-data-hook: install-worker-sources install-other-workers
	cd "$(DESTDIR)$(bashcompletiondir)" && $(LN_S) -f mcp-python mcp-pythond
uninstall-hook: uninstall-worker-sources uninstall-other-workers
	rm -f "$(DESTDIR)$(bashcompletiondir)/mcp-pythond"
