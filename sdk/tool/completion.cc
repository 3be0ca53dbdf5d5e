// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

struct Word {
  std::string text;
  std::string about;
  std::vector<std::string> values;  // values that it accepts; empty if it accepts any, or none
  bool takes_value = false;
};

std::string first_sentence(std::string text) {
  if (const size_t end = text.find_first_of(".:;\n"); end != std::string::npos) text.resize(end);
  std::erase_if(text, [](char c) { return c == '\'' || c == '"' || c == '`' || c == '[' || c == ']' || c == '\\'; });
  return text;
}

// Extracts c and c++ from the library's description "TEXT:{c,c++}".
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t start = type.find(":{");
  std::vector<std::string> values;
  if (start == std::string::npos || type.back() != '}') return values;
  std::istringstream list(type.substr(start + 2, type.size() - start - 3));
  for (std::string value; std::getline(list, value, ',');) values.push_back(value);
  return values;
}

std::vector<Word> options_of(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) {
      words.push_back({"--" + name, first_sentence(option->get_description()), values_of(*option),
                       option->get_items_expected_max() > 0});
    }
  }
  return words;
}

// Returns the values that positional arguments may have.
std::vector<std::string> plain_words_of(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) return values_of(*option);
  }
  return {};
}

std::vector<const CLI::App*> verbs_of(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> texts_of(const std::vector<Word>& words) {
  std::vector<std::string> texts;
  for (const Word& word : words) texts.push_back(word.text);
  return texts;
}

std::vector<Word> verb_words(const CLI::App& root) {
  std::vector<Word> words;
  for (const CLI::App* verb : verbs_of(root))
    words.push_back({verb->get_name(), first_sentence(verb->get_description()), {}});
  return words;
}

// If no words are offered, bash completes file names.
std::string bash(const CLI::App& root) {
  std::string out =
      "_collet() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
      "  COMPREPLY=()\n"
      "  # --option=value comes as three words\n"
      "  [[ $word != = ]] || word=\n"
      "  [[ $before != = || $COMP_CWORD -lt 3 ]] || before=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  if [[ $COMP_CWORD -eq 1 ]]; then\n";
  out += fmt::format("    words='{} {}'\n", joined(texts_of(verb_words(root))), joined(texts_of(options_of(root))));
  out += "  else\n    case ${COMP_WORDS[1]}:$before:$word in\n";
  for (const CLI::App* verb : verbs_of(root)) {
    const std::vector<Word> options = options_of(*verb);
    std::string any;
    for (const Word& word : options) {
      if (!word.takes_value) continue;
      const std::string row = fmt::format("{}:{}:*", verb->get_name(), word.text);
      if (word.values.empty()) {
        any += (any.empty() ? "" : "|") + row;
      } else {
        out += fmt::format("      {}) words='{}' ;;\n", row, joined(word.values));
      }
    }
    if (!any.empty()) out += fmt::format("      {}) ;;\n", any);
    out += fmt::format("      {}:*:-*) words='{}' ;;\n", verb->get_name(), joined(texts_of(options)));
    const std::vector<std::string> plain = plain_words_of(*verb);
    if (!plain.empty()) out += fmt::format("      {}:*:*) words='{}' ;;\n", verb->get_name(), joined(plain));
  }
  out +=
      "    esac\n  fi\n"
      "  [[ -z $words ]] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
      "complete -o default -F _collet collet\n";
  return out;
}

std::string zsh(const CLI::App& root) {
  std::string out = "#compdef collet\n_collet() {\n  if (( CURRENT == 2 )); then\n    local -a verbs=(\n";
  for (const Word& word : verb_words(root)) out += fmt::format("      '{}:{}'\n", word.text, word.about);
  out += "    )\n    _describe verb verbs\n    return\n  fi\n  case $words[2] in\n";
  for (const CLI::App* verb : verbs_of(root)) {
    out += fmt::format("    {}) _arguments \\\n", verb->get_name());
    for (const Word& word : options_of(*verb)) {
      const std::string value = word.values.empty() ? "_files" : "(" + joined(word.values) + ")";
      out += fmt::format("      '{}{}[{}]{}' \\\n", word.takes_value ? "*" : "", word.text, word.about,
                         word.takes_value ? ":value:" + value : "");
    }
    const std::vector<std::string> plain = plain_words_of(*verb);
    out += fmt::format("      '*:file:{}' ;;\n", plain.empty() ? "_files" : "(" + joined(plain) + ")");
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
      std::string value = word.takes_value ? " -r" : "";
      if (!word.values.empty()) value += fmt::format(" -f -a '{}'", joined(word.values));
      out += fmt::format("complete -c collet -n '__fish_seen_subcommand_from {}' -l {}{} -d '{}'\n", verb->get_name(),
                         word.text.substr(2), value, word.about);
    }
    const std::vector<std::string> plain = plain_words_of(*verb);
    if (plain.empty()) continue;
    out += fmt::format("complete -c collet -n '__fish_seen_subcommand_from {}' -f -a '{}'\n", verb->get_name(),
                       joined(plain));
  }
  return out;
}

constexpr char kFooter[] = R"(Examples:
  collet completion bash > ~/.local/share/bash-completion/completions/collet
  collet completion zsh > ~/.zfunc/_collet
  collet completion fish > ~/.config/fish/completions/collet.fish)";

}  // namespace

Action add_completion(CLI::App& verb) {
  auto shell = std::make_shared<std::string>();
  verb.add_option("SHELL", *shell, "The shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb.footer(kFooter);
  return [&verb, shell] {
    const CLI::App& root = *verb.get_parent();
    show("{}", *shell == "bash" ? bash(root) : *shell == "zsh" ? zsh(root) : fish(root));
    return kDone;
  };
}

}  // namespace collet::tool
