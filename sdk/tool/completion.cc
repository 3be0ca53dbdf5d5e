// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

struct Word {
  std::string text;
  std::string about;
};

std::string first_sentence(std::string text) {
  if (const size_t end = text.find_first_of(".:;\n"); end != std::string::npos) text.resize(end);
  std::erase_if(text, [](char c) { return c == '\'' || c == '"' || c == '`' || c == '[' || c == ']' || c == '\\'; });
  return text;
}

std::vector<Word> options_of(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words.push_back({"--" + name, first_sentence(option->get_description())});
    }
  }
  return words;
}

std::vector<const CLI::App*> verbs_of(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

std::string joined(const std::vector<Word>& words) {
  std::string text;
  for (const Word& word : words) text += (text.empty() ? "" : " ") + word.text;
  return text;
}

std::vector<Word> verb_words(const CLI::App& root) {
  std::vector<Word> words;
  for (const CLI::App* verb : verbs_of(root))
    words.push_back({verb->get_name(), first_sentence(verb->get_description())});
  return words;
}

std::string bash(const CLI::App& root) {
  std::string out = "_collet() {\n  local word=${COMP_WORDS[COMP_CWORD]}\n  COMPREPLY=()\n  case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* verb : verbs_of(root)) {
    out += fmt::format(
        "    {}) [[ $COMP_CWORD -gt 1 && $word == -* ]] && COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;\n",
        verb->get_name(), joined(options_of(*verb)));
  }
  out += fmt::format(
      "  esac\n  [ \"$COMP_CWORD\" -gt 1 ] || COMPREPLY=($(compgen -W '{} {}' -- \"$word\"))\n}}\n"
      "complete -o default -F _collet collet\n",
      joined(verb_words(root)), joined(options_of(root)));
  return out;
}

std::string zsh(const CLI::App& root) {
  std::string out = "#compdef collet\n_collet() {\n  if (( CURRENT == 2 )); then\n    local -a verbs=(\n";
  for (const Word& word : verb_words(root)) out += fmt::format("      '{}:{}'\n", word.text, word.about);
  out += "    )\n    _describe verb verbs\n    return\n  fi\n  case $words[2] in\n";
  for (const CLI::App* verb : verbs_of(root)) {
    out += fmt::format("    {}) _arguments \\\n", verb->get_name());
    for (const Word& word : options_of(*verb)) out += fmt::format("      '{}[{}]' \\\n", word.text, word.about);
    out += "      '*:file:_files' ;;\n";
  }
  out += "  esac\n}\ncompdef _collet collet\n";
  return out;
}

std::string fish(const CLI::App& root) {
  std::string out = "complete -c collet -f -n __fish_use_subcommand\n";
  for (const Word& word : verb_words(root)) {
    out += fmt::format("complete -c collet -n __fish_use_subcommand -a {} -d '{}'\n", word.text, word.about);
  }
  for (const CLI::App* verb : verbs_of(root)) {
    for (const Word& word : options_of(*verb)) {
      out += fmt::format("complete -c collet -n '__fish_seen_subcommand_from {}' -l {} -d '{}'\n", verb->get_name(),
                         word.text.substr(2), word.about);
    }
  }
  return out;
}

}  // namespace

Action add_completion(CLI::App& verb) {
  auto shell = std::make_shared<std::string>();
  verb.add_option("SHELL", *shell, "The shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb.footer(
      "Examples:\n  collet completion bash > ~/.local/share/bash-completion/completions/collet\n"
      "  collet completion zsh > ~/.zfunc/_collet\n  collet completion fish > ~/.config/fish/completions/collet.fish");
  return [&verb, shell] {
    const CLI::App& root = *verb.get_parent();
    fmt::print("{}", *shell == "bash" ? bash(root) : *shell == "zsh" ? zsh(root) : fish(root));
    return kDone;
  };
}

}  // namespace collet::tool
