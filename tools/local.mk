# SPDX-License-Identifier: Apache-2.0
# tools: what clients call. One library a folder, each linked to those above it alone (SUPERVISOR_LIBS).
# ---- the sets of tools -----------------------------------------------------------
noinst_LIBRARIES += libtools.a
libtools_a_SOURCES = \
	tools/toolsets.c tools/toolsets.h
libtools_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- compat: the tools of three other servers
noinst_LIBRARIES += libtools-compat.a
libtools_compat_a_SOURCES = \
	tools/compat/exec_sandbox.c \
	tools/compat/python_sandbox.c tools/compat/python_sandbox.h \
	tools/compat/run_python.c tools/compat/run_python.h \
	tools/compat/run_python_answer.c \
	tools/compat/sandbox_info.c \
	tools/compat/validate_code.c
libtools_compat_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- check: what is installed, and whether a script would run
noinst_LIBRARIES += libtools-check.a
libtools_check_a_SOURCES = \
	tools/check/check_environment.c tools/check/check_environment.h \
	tools/check/search_tools.c \
	tools/check/validate_script.c tools/check/validate_script.h
libtools_check_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- repl: the tool run_repl
noinst_LIBRARIES += libtools-repl.a
libtools_repl_a_SOURCES = \
	tools/repl/run_repl.c tools/repl/run_repl.h \
	tools/repl/run_repl_answer.c \
	tools/repl/run_repl_begin.c \
	tools/repl/run_repl_cell.c \
	tools/repl/run_repl_parts.h
libtools_repl_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- script: the tool run_script
noinst_LIBRARIES += libtools-script.a
libtools_script_a_SOURCES = \
	tools/script/outcome_copy.c \
	tools/script/run_script.c tools/script/run_script.h \
	tools/script/run_script_answer.c tools/script/run_script_answer.h \
	tools/script/run_script_calls.c \
	tools/script/run_script_arguments.c tools/script/run_script_arguments.h \
	tools/script/run_script_files.c tools/script/run_script_files.h \
	tools/script/run_script_results.c tools/script/run_script_results.h \
	tools/script/script_input.c tools/script/script_input.h \
	tools/script/script_tools.c tools/script/script_tools.h
libtools_script_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- packages: what scripts depend on, resolved, approved and installed
noinst_LIBRARIES += libtools-packages.a
libtools_packages_a_SOURCES = \
	tools/packages/collect.c tools/packages/collect.h \
	tools/packages/consent.c tools/packages/consent.h \
	tools/packages/delivery.c tools/packages/delivery.h \
	tools/packages/found.c tools/packages/found.h \
	tools/packages/install.c tools/packages/install.h \
	tools/packages/install_build.c \
	tools/packages/install_decide.c \
	tools/packages/install_make.c \
	tools/packages/install_package.c \
	tools/packages/install_parts.h \
	tools/packages/missing.c tools/packages/missing.h tools/packages/modules.def \
	tools/packages/needs.c tools/packages/needs.h \
	tools/packages/program.c tools/packages/program.h
libtools_packages_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- files: files of the user's machine
noinst_LIBRARIES += libtools-files.a
libtools_files_a_SOURCES = \
	tools/files/local_file.c
libtools_files_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- session: handles and checkpoints of sessions
noinst_LIBRARIES += libtools-session.a
libtools_session_a_SOURCES = \
	tools/session/handover_table.c tools/session/handover_table.h \
	tools/session/repl_checkpoints.c \
	tools/session/repl_sessions.c tools/session/repl_sessions.h \
	tools/session/repl_sessions_keep.c tools/session/repl_sessions_keep.h \
	tools/session/repl_sessions_parts.h
libtools_session_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- sets: names and manifests of sets of packages
noinst_LIBRARIES += libtools-sets.a
libtools_sets_a_SOURCES = \
	tools/sets/owned.c tools/sets/owned.h \
	tools/sets/set.c tools/sets/set.h \
	tools/sets/store.c tools/sets/store.h
libtools_sets_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- job: runs in the background
noinst_LIBRARIES += libtools-job.a
libtools_job_a_SOURCES = \
	tools/job/background.c tools/job/background.h \
	tools/job/job.c
libtools_job_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# ---- shared: what several tools use
noinst_LIBRARIES += libtools-shared.a
libtools_shared_a_SOURCES = \
	tools/shared/argument_map.c tools/shared/argument_map.h \
	tools/shared/environment.c tools/shared/environment.h \
	tools/shared/inside.c tools/shared/inside.h \
	tools/shared/links.c tools/shared/links.h \
	tools/shared/media.c tools/shared/media.h \
	tools/shared/other_tools.c tools/shared/other_tools.h \
	tools/shared/reasons.h \
	tools/shared/requirements.c tools/shared/requirements.h \
	tools/shared/file_read.c tools/shared/file_read.h \
	tools/shared/readable.c tools/shared/readable.h \
	tools/shared/resources.c tools/shared/resources.h \
	tools/shared/schema.c tools/shared/schema.h \
	tools/shared/skills.c tools/shared/skills.h \
	tools/shared/tiers.c tools/shared/tiers.h \
	tools/shared/tools.h
libtools_shared_a_CPPFLAGS = $(SUPERVISOR_CPPFLAGS)

# Python programs that run in workers, as C strings. embed.py comes first among what each is made of.
EMBED = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON3) $^ $@
EMBEDDED = \
	tools/shared/look_script.h \
	tools/shared/look_environment.h \
	tools/check/look_tools.h \
	tools/compat/look_code.h \
	tools/packages/resolve_packages.h \
	tools/packages/build_package.h \
	tools/packages/fetch_packages.h \
	tools/packages/compile_packages.h \
	tools/shared/result_view.h \
	tools/shared/skills_built_in.h
# Skills: each one text of an array.
SKILLS = skills/files-in-and-out/SKILL.md skills/long-runs/SKILL.md skills/packages-and-approvals/SKILL.md \
	skills/sessions-and-checkpoints/SKILL.md skills/tools-from-scripts/SKILL.md
# The page of views: one document, written in parts.
VIEW = views/top.html views/result.css views/body.html views/call.js views/table.js views/result.js \
	views/result_view.html
BUILT_SOURCES += $(EMBEDDED)
CLEANFILES += $(EMBEDDED)
EXTRA_DIST += tools/shared/embed.py tools/shared/look_script.py tools/shared/look_environment.py \
	tools/check/look_tools.py tools/compat/look_code.py tools/packages/handed.py tools/packages/resolve_packages.py \
	tools/packages/build_package.py tools/packages/fetch_packages.py \
	tools/packages/compile_packages.py $(VIEW) $(SKILLS)
tools/shared/look_script.h: tools/shared/embed.py worker/lenient.py tools/shared/look_script.py
	$(EMBED)
tools/check/look_tools.h: tools/shared/embed.py tools/check/look_tools.py
	$(EMBED)
tools/shared/look_environment.h: tools/shared/embed.py tools/shared/look_environment.py
	$(EMBED)
tools/compat/look_code.h: tools/shared/embed.py policy/import_check.py worker/lenient.py tools/compat/look_code.py
	$(EMBED)
tools/packages/resolve_packages.h: tools/shared/embed.py tools/packages/handed.py \
		tools/packages/resolve_packages.py
	$(EMBED)
tools/packages/build_package.h: tools/shared/embed.py tools/packages/handed.py \
		tools/packages/build_package.py
	$(EMBED)
tools/packages/fetch_packages.h: tools/shared/embed.py tools/packages/handed.py \
		tools/packages/fetch_packages.py
	$(EMBED)
tools/packages/compile_packages.h: tools/shared/embed.py tools/packages/compile_packages.py
	$(EMBED)
tools/shared/skills_built_in.h: tools/shared/embed.py $(SKILLS)
	$(EMBED)
tools/shared/result_view.h: tools/shared/embed.py $(VIEW)
	$(EMBED)
tools/compat/libtools_compat_a-validate_code.$(OBJEXT): tools/compat/look_code.h
tools/shared/libtools_shared_a-resources.$(OBJEXT): tools/shared/result_view.h
tools/shared/libtools_shared_a-skills.$(OBJEXT): tools/shared/skills_built_in.h
tools/shared/libtools_shared_a-requirements.$(OBJEXT): tools/shared/look_script.h
tools/shared/libtools_shared_a-environment.$(OBJEXT): tools/shared/look_environment.h
tools/packages/libtools_packages_a-install.$(OBJEXT): tools/packages/resolve_packages.h
tools/packages/libtools_packages_a-install_make.$(OBJEXT): tools/packages/fetch_packages.h \
	tools/packages/compile_packages.h
tools/packages/libtools_packages_a-install_build.$(OBJEXT): tools/packages/build_package.h

# The schemas of tools, as C strings.
SCHEMAS = \
	tools/check/schema/check_environment_input.json \
	tools/check/schema/check_environment_output.json \
	tools/check/schema/search_tools_input.json \
	tools/check/schema/search_tools_output.json \
	tools/check/schema/validate_script_input.json \
	tools/check/schema/validate_script_output.json \
	tools/compat/schema/execute_code_input.json \
	tools/compat/schema/execute_code_output.json \
	tools/compat/schema/execute_python_input.json \
	tools/compat/schema/no_input.json \
	tools/compat/schema/run_python_code_input.json \
	tools/compat/schema/sandbox_info_output.json \
	tools/compat/schema/text_output.json \
	tools/compat/schema/validate_code_input.json \
	tools/compat/schema/validate_code_output.json \
	tools/compat/schema/validate_input.json \
	tools/files/schema/local_file_input.json \
	tools/files/schema/local_file_output.json \
	tools/files/schema/save_file_input.json \
	tools/files/schema/save_file_output.json \
	tools/job/schema/job_input.json \
	tools/job/schema/job_output.json \
	tools/packages/schema/install_package_input.json \
	tools/packages/schema/install_package_output.json \
	tools/script/schema/run_input.json \
	tools/script/schema/run_output.json
SCHEMA_STRINGS = $(SCHEMAS:.json=.h)
BUILT_SOURCES += $(SCHEMA_STRINGS)
CLEANFILES += $(SCHEMA_STRINGS)
EXTRA_DIST += $(SCHEMAS)
SUFFIXES = .json .h
.json.h:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON3) $(srcdir)/tools/shared/embed.py $< $@
$(SCHEMA_STRINGS): tools/shared/embed.py
tools/files/libtools_files_a-local_file.$(OBJEXT): tools/files/schema/local_file_input.h \
	tools/files/schema/local_file_output.h tools/files/schema/save_file_input.h \
	tools/files/schema/save_file_output.h
tools/job/libtools_job_a-job.$(OBJEXT): tools/job/schema/job_input.h \
	tools/job/schema/job_output.h
tools/check/libtools_check_a-validate_script.$(OBJEXT): tools/check/schema/validate_script_input.h \
	tools/check/schema/validate_script_output.h
tools/check/libtools_check_a-search_tools.$(OBJEXT): tools/check/look_tools.h \
	tools/check/schema/search_tools_input.h tools/check/schema/search_tools_output.h
tools/check/libtools_check_a-check_environment.$(OBJEXT): tools/check/schema/check_environment_input.h \
	tools/check/schema/check_environment_output.h
tools/packages/libtools_packages_a-install_package.$(OBJEXT): tools/packages/schema/install_package_input.h \
	tools/packages/schema/install_package_output.h
tools/script/libtools_script_a-run_script_arguments.$(OBJEXT): tools/script/schema/run_input.h
tools/script/libtools_script_a-run_script_answer.$(OBJEXT): tools/script/schema/run_output.h
tools/compat/libtools_compat_a-exec_sandbox.$(OBJEXT): tools/compat/schema/execute_python_input.h \
	tools/compat/schema/no_input.h \
	tools/compat/schema/text_output.h \
	tools/compat/schema/validate_input.h
tools/compat/libtools_compat_a-python_sandbox.$(OBJEXT): tools/compat/schema/execute_code_input.h \
	tools/compat/schema/execute_code_output.h
tools/compat/libtools_compat_a-run_python.$(OBJEXT): tools/compat/schema/run_python_code_input.h
tools/compat/libtools_compat_a-sandbox_info.$(OBJEXT): tools/compat/schema/no_input.h \
	tools/compat/schema/sandbox_info_output.h
tools/compat/libtools_compat_a-validate_code.$(OBJEXT): tools/compat/schema/validate_code_input.h \
	tools/compat/schema/validate_code_output.h
