/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qpscope completion: a script for a shell, made from the tables of subcommands and options, so that it never says
 * anything else than they do.
 */
#include "cli/subcommand.h"

#include <stdio.h>
#include <string.h>

enum shell {
    SHELL_BASH,
    SHELL_ZSH,
    SHELL_FISH,
};

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

const struct option_program subcommand_completion_program = {
    .name = "qpscope completion",
    .summary = "Prints a script that completes qpscope's subcommands and options in a shell.",
    .usage = "{bash|zsh|fish}",
    .epilogue = "Examples:\n"
                "  source <(qpscope completion bash)\n"
                "  qpscope completion fish > ~/.config/fish/completions/qpscope.fish\n"
                "Exit codes: 0 done, 2 used wrongly.",
    .positionals_max = 1,
    .words = shells,
};

static const struct option_spec own_specs[] = {
    {.name = "help", .short_name = 'h', .kind = OPTION_FLAG, .help = "print this and exit"},
    {.name = "version", .short_name = 'V', .kind = OPTION_FLAG, .help = "print the version and exit"},
};

/* What an option's value is completed with. */
static bool is_path(const struct option_spec *spec)
{
    static const char *const paths[] = {"FILE", "FOLDER", "CAPTURE", "PATH", "STORE"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (spec->argument != NULL && strcmp(spec->argument, paths[i]) == 0) {
            return true;
        }
    }
    return false;
}

typedef void write_option(const struct subcommand *subcommand, const struct option_spec *spec);

static void each_option(const struct subcommand *subcommand, write_option *write)
{
    for (size_t i = 0; i < subcommand->program->options_count; i++) {
        write(subcommand, &subcommand->program->options[i]);
    }
    for (size_t i = 0; i < sizeof(own_specs) / sizeof(own_specs[0]); i++) {
        write(subcommand, &own_specs[i]);
    }
}

static void write_words(const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        printf("%s%s", i == 0 ? "" : " ", words[i]);
    }
}

/* Within single quotes of zsh, where some characters mean something to _arguments and _describe. */
static void write_quoted(const char *text, const char *escaped)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            printf(strchr(escaped, *text) != NULL ? "\\%c" : "%c", *text);
        }
    }
}

static void write_bash_value(const struct subcommand *subcommand, const struct option_spec *spec)
{
    if (spec->kind == OPTION_FLAG) {
        return;
    }
    printf("        %s,--%s", subcommand->name, spec->name);
    if (spec->short_name != 0) {
        printf("|%s,-%c", subcommand->name, spec->short_name);
    }
    if (spec->kind == OPTION_CHOICE) {
        fputs(") COMPREPLY=($(compgen -W '", stdout);
        write_words(spec->choices);
        fputs("' -- \"$word\")); return ;;\n", stdout);
    } else {
        printf(") %s; return ;;\n", is_path(spec) ? "compopt -o default" : "COMPREPLY=()");
    }
}

static void write_bash_option(const struct subcommand *subcommand, const struct option_spec *spec)
{
    (void)subcommand;
    printf(" --%s", spec->name);
}

static void write_bash(void)
{
    puts("# Made by qpscope completion bash.\n"
         "_qpscope() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options='' words=''\n"
         "    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    fputs("        COMPREPLY=($(compgen -W '--help --version --store --json", stdout);
    for (size_t i = 0; i < subcommands_count; i++) {
        printf(" %s", subcommands[i].name);
    }
    puts("' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]},$before in");
    for (size_t i = 0; i < subcommands_count; i++) {
        each_option(&subcommands[i], write_bash_value);
    }
    puts("    esac\n    case ${COMP_WORDS[1]} in");
    for (size_t i = 0; i < subcommands_count; i++) {
        printf("        %s) options='", subcommands[i].name);
        each_option(&subcommands[i], write_bash_option);
        fputs("'", stdout);
        if (subcommands[i].program->words != NULL) {
            fputs(" words='", stdout);
            write_words(subcommands[i].program->words);
            fputs("'", stdout);
        }
        puts(" ;;");
    }
    puts("    esac\n"
         "    if [[ $word == -* ]]; then\n"
         "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
         "    elif [ -n \"$words\" ]; then\n"
         "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "    else\n"
         "        compopt -o default\n"
         "    fi\n"
         "}\n"
         "complete -F _qpscope qpscope");
}

static void write_zsh_option(const struct subcommand *subcommand, const struct option_spec *spec)
{
    (void)subcommand;
    const char *repeated = spec->kind == OPTION_TEXT_LIST ? "*" : "";
    printf(" \\\n            '%s--%s[", repeated, spec->name);
    write_quoted(spec->help, "[]:\\");
    putchar(']');
    if (spec->kind != OPTION_FLAG) {
        putchar(':');
        write_quoted(spec->argument, "[]:\\");
        putchar(':');
    }
    if (spec->kind == OPTION_CHOICE) {
        putchar('(');
        write_words(spec->choices);
        putchar(')');
    } else if (is_path(spec)) {
        fputs("_files", stdout);
    }
    putchar('\'');
    if (spec->short_name != 0) {
        printf(" '%s-%c%s'", repeated, spec->short_name,
               spec->kind == OPTION_FLAG ? ""
               : is_path(spec)           ? ":value:_files"
                                         : ":value:");
    }
}

static void write_zsh(void)
{
    puts("#compdef qpscope\n"
         "# Made by qpscope completion zsh.\n"
         "_qpscope() {\n"
         "    local -a names\n"
         "    names=(");
    for (size_t i = 0; i < subcommands_count; i++) {
        printf("        '%s:", subcommands[i].name);
        write_quoted(subcommands[i].help, ":\\");
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe subcommand names\n"
         "        return\n"
         "    fi\n"
         "    local name=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $name in");
    for (size_t i = 0; i < subcommands_count; i++) {
        printf("        %s) _arguments", subcommands[i].name);
        each_option(&subcommands[i], write_zsh_option);
        if (subcommands[i].program->words != NULL) {
            fputs(" '1: :(", stdout);
            write_words(subcommands[i].program->words);
            fputs(")'", stdout);
        } else if (subcommands[i].program->positionals_max > 0) {
            fputs(" '*: :_files'", stdout);
        }
        puts(" ;;");
    }
    puts("    esac\n}\n_qpscope \"$@\"");
}

/* Within single quotes fish takes a backslash before a quote and itself. */
static void write_fish_text(const char *text)
{
    for (; *text != '\0'; text++) {
        printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    }
}

static void write_fish_option(const struct subcommand *subcommand, const struct option_spec *spec)
{
    printf("complete -c qpscope -n '__fish_seen_subcommand_from %s' -l %s", subcommand->name, spec->name);
    if (spec->short_name != 0) {
        printf(" -s %c", spec->short_name);
    }
    if (spec->kind == OPTION_CHOICE) {
        fputs(" -x -a '", stdout);
        write_words(spec->choices);
        putchar('\'');
    } else if (spec->kind != OPTION_FLAG) {
        fputs(is_path(spec) ? " -r -F" : " -x", stdout);
    }
    fputs(" -d '", stdout);
    write_fish_text(spec->help);
    puts("'");
}

static void write_fish(void)
{
    puts("# Made by qpscope completion fish.\ncomplete -c qpscope -f");
    for (size_t i = 0; i < subcommands_count; i++) {
        const struct option_program *program = subcommands[i].program;
        printf("complete -c qpscope -n __fish_use_subcommand -a %s -d '", subcommands[i].name);
        write_fish_text(subcommands[i].help);
        puts("'");
        if (program->words != NULL) {
            printf("complete -c qpscope -n '__fish_seen_subcommand_from %s' -a '", subcommands[i].name);
            write_words(program->words);
            puts("'");
        } else if (program->positionals_max > 0) {
            printf("complete -c qpscope -n '__fish_seen_subcommand_from %s' -F\n", subcommands[i].name);
        }
        each_option(&subcommands[i], write_fish_option);
    }
}

int subcommand_completion(int argc, char **argv)
{
    static void (*const writers[])(void) = {write_bash, write_zsh, write_fish};
    char none;
    char **words;
    size_t words_count;
    int exit_code;
    if (!subcommand_parse_words(&subcommand_completion_program, argc, argv, &none, &words, &words_count, &exit_code)) {
        return exit_code;
    }
    if (words_count == 0) {
        return subcommand_usage_error(&subcommand_completion_program, "say for which shell: bash, zsh or fish");
    }
    writers[option_word(&subcommand_completion_program, words[0])]();
    return EXIT_CODE_OK;
}
